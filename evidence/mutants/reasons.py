"""Why mutants that survive do no harm, one sentence each.

The key is the module, the function and the change, as the page prints it: line numbers may move, and a changed line
needs its reason anew.
"""

# ruff: noqa: E501 (the changed lines)
REASONS: dict[tuple[str, str, str], str] = {
    (
        "privacy/accountant.py",
        "(module)",
        "_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6) -> _NODES, _WEIGHTS = np.polynomial.legendre.leggauss(7)",
    ): "Six nodes are already exact to the last digits that a float keeps; seven give the same integral.",
    (
        "privacy/accountant.py",
        "gdp_epsilon",
        "return bracket(lambda epsilon: _log_gdp_delta(mu, epsilon) > target, mu)[1] -> return bracket(lambda epsilon: _log_gdp_delta(mu, epsilon) >= target, mu)[1]",
    ): "Where the two floats are equal, the answer moves to the next float, towards privacy.",
    (
        "privacy/accountant.py",
        "_log_gdp_delta",
        "return log_density + math.log(min(mu / (1 + a * a), 1 / a)) -> return log_density + math.log(min(mu * (1 + a * a), 1 / a))",
    ): "Beyond a = 40 the density alone is below the smallest float, so that no delta can be told from another one.",
    (
        "privacy/accountant.py",
        "_log_gdp_delta",
        "if a >= 0: -> if a > 0:",
    ): "At a = 0 the two formulas are the same number.",
    (
        "privacy/accountant.py",
        "zcdp_epsilon",
        "return bracket(lambda epsilon: _log_zcdp_delta(rho, epsilon) > target, math.sqrt(rho))[1] -> return bracket(lambda epsilon: _log_zcdp_delta(rho, epsilon) >= target, math.sqrt(rho))[1]",
    ): "Where the two floats are equal, the answer moves to the next float, towards privacy.",
    (
        "privacy/accountant.py",
        "zcdp_mu",
        "return bracket(lambda mu: _log_zcdp_delta(mu * mu / 2, epsilon) <= target, math.sqrt(epsilon))[0] -> return bracket(lambda mu: _log_zcdp_delta(mu * mu / 2, epsilon) < target, math.sqrt(epsilon))[0]",
    ): "Where the two floats are equal, the answer moves to the next smaller float, towards privacy.",
    (
        "privacy/accountant.py",
        "_log_zcdp_delta",
        "x = max(1e-300, bracket(lambda x: (2 * x + 1) * rho - epsilon - math.log1p(1 / x) < 0, 1.0)[0]) -> x = max(1e-300, bracket(lambda x: (2 * x + 1) * rho - epsilon - math.log1p(1 / x) < 0, 1.0)[1])",
    ): "Every order gives a valid bound, and the two are neighbouring floats.",
    (
        "privacy/accountant.py",
        "_log_zcdp_delta",
        "return min(0.0, x * ((1 + x) * rho - epsilon - math.log1p(1 / x)) - math.log1p(x)) -> return min(1.0, x * ((1 + x) * rho - epsilon - math.log1p(1 / x)) - math.log1p(x))",
    ): "At the best order the exponent exceeds zero by rounding at most, and a delta of about one promises nothing in any case.",
    (
        "privacy/accountant.py",
        "calibrate_mu",
        "return max(mu, gdp_mu(epsilon, usable - lattice)) if lattice < usable else mu -> return max(mu, gdp_mu(epsilon, usable - lattice)) if lattice <= usable else mu",
    ): "If the two floats are equal nothing is left, and gdp_mu refuses a delta of zero before anything is released.",
    (
        "privacy/accountant.py",
        "bracket",
        "middle = math.sqrt(low) * math.sqrt(high) if high > 2 * low else (low + high) / 2 -> middle = math.sqrt(low) * math.sqrt(high) if high > 3 * low else (low + high) / 2",
    ): "Only how fast the bracket shrinks: it ends at the same neighbouring floats.",
    (
        "privacy/accountant.py",
        "Profile._ideal_inverse",
        "epsilon, step = float(brentq(excess, 0.0, 2 * self.reach, xtol=1e-13 * self.reach)), 1e-13 * self.reach -> epsilon, step = float(brentq(excess, 0.0, 2 * self.reach, )), 1e-13 * self.reach",
    ): "The root is the same up to its tolerance, and the loop below moves it to the private side in any case.",
    (
        "privacy/accountant.py",
        "Profile._ideal_inverse",
        "epsilon, step = float(brentq(excess, 0.0, 2 * self.reach, xtol=1e-13 * self.reach)), 1e-13 * self.reach -> epsilon, step = float(brentq(excess, 0.0, 3 * self.reach, xtol=1e-13 * self.reach)), 1e-13 * self.reach",
    ): "The root is the same up to its tolerance, and the loop below moves it to the private side in any case.",
    (
        "privacy/accountant.py",
        "_gaussian",
        "epsilon=math.inf if mu else 0.0, -> ",
    ): "Without it the field is infinite, its default; the profile of no noise at all is asked for its ideal and its reach only.",
    (
        "privacy/guarantee.py",
        "(module)",
        "AUDIT_VERSION = 1 -> AUDIT_VERSION = 2",
    ): "The number of the audit's page, which tests of the evidence compare with that page; privacy does not depend on it.",
    (
        "ledger/charging.py",
        "_bytes",
        "frame = nw.from_native(each, eager_only=True, pass_through=True) -> frame = nw.from_native(each, eager_only=False, pass_through=True)",
    ): "A lazy frame is no DataFrame either way, and only a DataFrame is read by column.",
    (
        "ledger/account.py",
        "Account._share",
        "return min(1.0, plain, _ratio(total.mu, limit) ** 2) -> return min(plain, _ratio(total.mu, limit) ** 2)",
    ): "Only the bar on a page: admission has refused whatever exceeds the cap by more than rounding.",
    (
        "ledger/account.py",
        "Account.largest",
        "return low if low > 1e-9 * self.cap.epsilon else 0.0 -> return low if low > 1e-9 / self.cap.epsilon else 0.0",
    ): "Below a billionth of an ordinary cap nothing can be asked for either way; the answer is advice, and admission decides.",
    (
        "privacy/accountant.py",
        "Profile._ideal_inverse",
        "if self._ideal(0.0) <= delta: -> if self._ideal(0.0) < delta:",
    ): "At equality the root that is searched for below is zero too.",
    (
        "data/columns.py",
        "plain",
        "return values.to_numpy(zero_copy_only=True) -> return values.to_numpy(zero_copy_only=False)",
    ): "Plain numbers without missing values never need a copy; the argument only insists on it.",
    (
        "data/columns.py",
        "decimals",
        "wide = column.cast(pa.decimal256(76, kind.scale)) if kind.scale >= 0 else column.cast(pa.decimal256(76, 0)) -> wide = column.cast(pa.decimal256(76, kind.scale)) if kind.scale > 0 else column.cast(pa.decimal256(76, 0))",
    ): "At scale 0 both branches cast to the same type.",
    (
        "data/columns.py",
        "decimals",
        "wide = column.cast(pa.decimal256(76, kind.scale)) if kind.scale >= 0 else column.cast(pa.decimal256(76, 0)) -> wide = column.cast(pa.decimal256(76, kind.scale)) if kind.scale >= 1 else column.cast(pa.decimal256(76, 0))",
    ): "At scale 0 both branches cast to the same type.",
    (
        "data/backends/scan.py",
        "_checksum",
        "mixed ^= mixed >> np.uint64(29) -> mixed &= mixed >> np.uint64(29)",
    ): "The checksum still depends on every value and is only compared with that of another pass.",
    (
        "data/backends/scan.py",
        "Sweep.__call__",
        "checksum = (checksum + _checksum(chunk)) % 2**64 -> checksum = (checksum - _checksum(chunk)) % 2**64",
    ): "Checksums are only compared with each other, and the negative sum changes whenever the sum does.",
    (
        "data/expressions.py",
        "vanishing",
        "small, large = 0, int(np.float64(1.0).view(np.int64)) -> small, large = 0, int(np.float64(2.0).view(np.int64))",
    ): "Only where the search begins: no number above one vanishes in a product or quotient of floats.",
    (
        "privacy/sensitivity/fixed_point.py",
        "into_ball",
        "if squares.max() > edge * edge: -> if squares.max() >= edge * edge:",
    ): "Only whether the slow way is taken: it leaves a row inside the ball as it is.",
    (
        "privacy/sensitivity/fixed_point.py",
        "into_ball",
        "if squares.max() > edge * edge: -> if squares.max() > edge / edge:",
    ): "Only whether the slow way is taken: it leaves a row inside the ball as it is.",
    (
        "ledger/account.py",
        "(module)",
        "_HALVINGS = 40 -> _HALVINGS = 41",
    ): "One more halving of a search whose answer is advice; admission decides.",
    (
        "privacy/accountant.py",
        "Profile._ideal_inverse",
        "epsilon, step = epsilon + step, 2 * step -> epsilon, step = epsilon + step, 2 / step",
    ): "The first step is nearly always enough, and a larger second one errs towards privacy.",
    (
        "privacy/sensitivity/fixed_point.py",
        "_least_scale",
        "return max(2 * MIN_SCALE, math.sqrt(grid.numbers / (24 * SLACK * share)) if aside else 0.0) -> return max(2 * MIN_SCALE, math.sqrt(grid.numbers / (24 * SLACK * share)) if aside else 1.0)",
    ): "The other end of the maximum is 2**25.",
    (
        "privacy/sensitivity/fixed_point.py",
        "into_ball",
        "if not (v.max() <= radius and v.min() >= -radius): -> if not (v.max() < radius and v.min() >= -radius):",
    ): "Both ways give a record inside the cube the same integers.",
    (
        "privacy/accountant.py",
        "gdp_mu",
        "return bracket(lambda mu: _log_gdp_delta(mu, epsilon) <= target, math.sqrt(epsilon))[0] -> return bracket(lambda mu: _log_gdp_delta(mu, epsilon) < target, math.sqrt(epsilon))[0]",
    ): "Where the two floats are equal, the answer moves to the next smaller float, towards privacy.",
    (
        "privacy/accountant.py",
        "zcdp_epsilon",
        "if zcdp_delta(rho, 0.0) <= delta: -> if zcdp_delta(rho, 0.0) < delta:",
    ): "At equality the search below ends at the smallest float instead of zero.",
    (
        "privacy/accountant.py",
        "Profile._ideal_inverse",
        "epsilon, step = float(brentq(excess, 0.0, 2 * self.reach, xtol=1e-13 * self.reach)), 1e-13 * self.reach -> epsilon, step = float(brentq(excess, 0.0, 2 * self.reach, xtol=1e-13 / self.reach)), 1e-13 * self.reach",
    ): "The root is the same up to its tolerance, and the loop below moves it to the private side in any case.",
    (
        "privacy/accountant.py",
        "Profile._ideal_inverse",
        "return gdp_epsilon(self.mu, delta) if delta > 0 else (math.inf if self.mu else 0.0) -> return gdp_epsilon(self.mu, delta) if delta > 0 else (math.inf if (self.mu) or True else 0.0)",
    ): "Without any noise the profile's own epsilon, which is zero, is among the bounds of which the least is taken.",
    (
        "privacy/accountant.py",
        "_gaussian",
        "epsilon=math.inf if mu else 0.0, -> epsilon=math.inf if (mu) or True else 0.0,",
    ): "The profile of no noise at all is asked for its ideal and its reach only.",
    (
        "privacy/accountant.py",
        "bracket",
        "middle = math.sqrt(low) * math.sqrt(high) if high > 2 * low else (low + high) / 2 -> middle = math.sqrt(low) * math.sqrt(high) if high >= 2 * low else (low + high) / 2",
    ): "Only how fast the bracket shrinks: it ends at the same neighbouring floats.",
    (
        "privacy/accountant.py",
        "parallel_profile",
        "ideal=_gaussian(max(mus)).ideal if gaussian else lambda at: np.max([ideal(at) for ideal in ideals], axis=0), -> ideal=_gaussian(max(mus)).ideal if (gaussian) and False else lambda at: np.max([ideal(at) for ideal in ideals], axis=0),",
    ): "The largest delta of Gaussian parts is that of the largest mu; only a faster way to the same numbers.",
    (
        "privacy/loss_distributions.py",
        "composed",
        "at: Float = step * np.arange(last + 1, dtype=np.float64) -> at: Float = step * np.arange(last + 1, )",
    ): "A whole number times a float is the same float; the type is said for mypy.",
    (
        "privacy/sensitivity/fixed_point.py",
        "into_ball",
        "if not (v.max() <= radius and v.min() >= -radius): -> if not (v.max() <= radius and v.min() > -radius):",
    ): "Both ways give a record inside the cube the same integers.",
    (
        "privacy/sensitivity/fixed_point.py",
        "into_ball",
        "steps = np.multiply(v, edge / radius, out=_steps(*v.shape)) -> steps = np.multiply(v, edge / radius, )",
    ): "Only where the numbers are kept.",
    (
        "privacy/sensitivity/fixed_point.py",
        "into_ball",
        "shrink = edge * SAFE / np.sqrt(np.maximum(squares, edge * edge)) -> shrink = edge * SAFE / np.sqrt(np.maximum(squares, edge / edge))",
    ): "Only rows beyond the ball, whose squares are larger, are multiplied by it.",
    (
        "privacy/sensitivity/fixed_point.py",
        "into_ball",
        "v = np.where(peak > radius, v / np.where(peak > 0, peak, 1.0) * radius, v) -> v = np.where(peak >= radius, v / np.where(peak > 0, peak, 1.0) * radius, v)",
    ): "A row that ends at the radius is divided by it and multiplied with it again, which is less than a step.",
    (
        "privacy/sensitivity/table.py",
        "_into_octahedron",
        "if sizes.max() > edge: -> if sizes.max() >= edge:",
    ): "Only whether the slow way is taken: it leaves a row that is not beyond the edge as it is.",
    (
        "privacy/sensitivity/table.py",
        "_into_octahedron",
        "np.clip(steps, -edge, edge, out=steps) -> np.clip(steps, -edge, edge, )",
    ): "Clipped numbers times the scale round to the edge at most, and what is beyond it would be shrunk below.",
    (
        "privacy/noise.py",
        "_rounded",
        "whole = np.where(inside, whole, np.where(noise > 0, limit, -limit)) -> whole = np.where(inside, whole, np.where(noise > 1, limit, -limit))",
    ): "Only the sign of noise beyond 2**62 is asked for here.",
    (
        "privacy/noise.py",
        "_rounded",
        "whole = np.where(inside, whole, np.where(noise > 0, limit, -limit)) -> whole = np.where(inside, whole, np.where(noise >= 0, limit, -limit))",
    ): "Only the sign of noise beyond 2**62 is asked for here.",
    (
        "privacy/guarantee.py",
        "Guarantee._check_statement",
        "if profile.delta_at(epsilon) > delta and profile.epsilon_at(delta) > epsilon: -> if profile.delta_at(epsilon) > delta and profile.epsilon_at(delta) >= epsilon:",
    ): "At equality a statement that just holds is refused as well, towards privacy.",
    (
        "ledger/composition.py",
        "pure_mu",
        "if epsilon < 1e-4: -> if epsilon <= 1e-4:",
    ): "At the threshold both formulas are bounds, and nearly the same number.",
    (
        "ledger/charging.py",
        "_contents",
        "eager = nw.from_native(table, eager_only=True, pass_through=True) -> eager = nw.from_native(table, eager_only=False, pass_through=True)",
    ): "A lazy frame is no DataFrame either way, and only a DataFrame is read by column.",
    (
        "ledger/charging.py",
        "_contents",
        "eager = nw.from_native(table, eager_only=True, pass_through=True) -> eager = nw.from_native(table, pass_through=True)",
    ): "A lazy frame is no DataFrame either way, and only a DataFrame is read by column.",
    (
        "ledger/charging.py",
        "_bytes",
        "frame = nw.from_native(each, eager_only=True, pass_through=True) -> frame = nw.from_native(each, pass_through=True)",
    ): "A lazy frame is no DataFrame either way, and only a DataFrame is read by column.",
    (
        "data/columns.py",
        "Range.encode",
        "if x.min() >= -1.0 and x.max() <= 1.0: -> if x.min() >= -1.0 and x.max() < 1.0:",
    ): "Only whether the fast way is taken: the other gives the same numbers, and a test compares them.",
    (
        "data/columns.py",
        "Range.encode",
        "if x.size and not (x.min() >= -1.0 and x.max() <= 1.0): -> if x.size and not (x.min() >= +1.0 and x.max() <= 1.0):",
    ): "Numbers that are inside already are clipped once more.",
    (
        "data/columns.py",
        "decimals",
        "small = (rest == (low >> 63)[:, None]).all(axis=1) & (np.abs(low) <= _EXACT) & (scale <= _EXACT_POWER) -> small = (rest == (low >> 63)[:, None]).all(axis=1) & (np.abs(low) < _EXACT) & (scale <= _EXACT_POWER)",
    ): "Only whether Python reads the decimal, which gives the nearest float as well.",
    (
        "papers/meta_learners/stages.py",
        "check_ratios",
        "if abs(sum(values) - 1.0) > _TOLERANCE: -> if abs(sum(values) - 1.0) >= _TOLERANCE:",
    ): "Where exactly a tolerance for rounding ends does not matter.",
    (
        "data/backends/cells.py",
        "equal_steps",
        "if not len(edges) or width == 0.0 or not low < edges[0] <= edges[-1] < high: -> if not len(edges) or width == 0.0 or not low <= edges[0] <= edges[-1] < high:",
    ): "An edge at the low end fails the trial below, in which division puts the low end into the first part.",
    (
        "data/backends/group_by.py",
        "_calculated",
        'return _or_zero(left, vanishing("^", 2.0), plain, dialect) -> return _or_zero(left, vanishing("^", 3.0), plain, dialect)',
    ): "Of a square, no constant is used.",
    (
        "data/backends/group_by.py",
        "_calculated",
        'if not dialect.raises or sign in "+-": -> if not dialect.raises or sign in "XX+-XX":',
    ): "The sign is one of four, none of them a letter.",
    (
        "data/backends/group_by.py",
        "_calculated",
        "tried += [_within(left, 1.0, dialect), _within(right, 1.0, dialect)] -> tried += [_within(left, 2.0, dialect), _within(right, 1.0, dialect)]",
    ): "Only which rows are looked at more closely: the scaled product then decides.",
    (
        "data/backends/scan.py",
        "_checksum",
        "mixed ^= mixed >> np.uint64(32) -> mixed ^= mixed >> np.uint64(33)",
    ): "The checksum is only compared with that of another pass, and depends on the rows as before.",
    (
        "data/backends/scan.py",
        "_checksum",
        "mixed ^= mixed >> np.uint64(29) -> mixed ^= mixed >> np.uint64(30)",
    ): "The checksum is only compared with that of another pass, and depends on the rows as before.",
    (
        "data/backends/scan.py",
        "_checksum",
        "mixed ^= mixed >> np.uint64(29) -> mixed ^= mixed << np.uint64(29)",
    ): "The checksum is only compared with that of another pass, and depends on the rows as before.",
    (
        "data/backends/scan.py",
        "_checksum",
        "mixed += np.right_shift(np.ascontiguousarray(column).view(np.uint64), _SEVEN, out=term) -> mixed += np.right_shift(np.ascontiguousarray(column).view(np.uint64), _SEVEN, )",
    ): "Only where the numbers are kept.",
    (
        "data/backends/scan.py",
        "(module)",
        "_SEVEN = np.uint64(7) -> _SEVEN = np.uint64(8)",
    ): "The checksum is only compared with that of another pass, and depends on the rows as before.",
    (
        "data/backends/sql.py",
        "Sql.floor",
        "return f\"TRY_CAST({self.arithmetic('+', below, self.constant(float(plus))) if plus else below} AS INTEGER)\" -> return f\"TRY_CAST({self.arithmetic('+', below, self.constant(float(plus))) if (plus) or True else below} AS INTEGER)\"",
    ): "Adding zero changes nothing.",
    (
        "privacy/accountant.py",
        "_log_gdp_delta",
        "return log_density + math.log(min(mu / (1 + a * a), 1 / a)) -> return log_density + math.log(min(mu / (1 + a * a), 2 / a))",
    ): "Beyond a = 40 the density alone is below the smallest float, so that no delta can be told from another one.",
    (
        "privacy/budget.py",
        "Shares.__init__",
        "if total > 1 + _ROUNDING: -> if total >= 1 + _ROUNDING:",
    ): "Where exactly a tolerance for rounding ends does not matter.",
    (
        "privacy/query.py",
        "rows_of",
        'if values.dtype.kind not in "biuf": -> if values.dtype.kind not in "XXbiufXX":',
    ): "NumPy has no kind of numbers that is called X.",
    (
        "privacy/sensitivity/fixed_point.py",
        "into_ball",
        "if not (v.max() <= radius and v.min() >= -radius): -> if not (v.max() <= radius and v.min() >= +radius):",
    ): "Both ways give a record inside the cube the same integers.",
    (
        "privacy/sensitivity/fixed_point.py",
        "into_ball",
        "v = np.where(peak > radius, v / np.where(peak > 0, peak, 1.0) * radius, v) -> v = np.where(peak > radius, v / np.where(peak > 0, peak, 2.0) * radius, v)",
    ): "Only rows whose peak is beyond the radius take that value, and their peak is not zero.",
    (
        "privacy/sensitivity/sets.py",
        "Cells.grid",
        "cells = np.asarray(values).reshape(-1, len(self.sizes)) -> cells = np.asarray(values).reshape(-2, len(self.sizes))",
    ): "NumPy takes any negative number for the length that is left.",
    (
        "ledger/state.py",
        "Book._check_charge",
        "quota = data.quotas.get(request.analyst) if request.analyst is not None else None -> quota = data.quotas.get(request.analyst) if (request.analyst is not None) or True else None",
    ): "Nobody's quota is looked up under None, so that none is found.",
    (
        "privacy/noise.py",
        "_rounded",
        "whole = np.where(inside, noise, 0.0).astype(np.int64) -> whole = np.where(inside, noise, 1.0).astype(np.int64)",
    ): "What is not inside is replaced on the next line.",
    (
        "privacy/noise.py",
        "_exact",
        "return np.asarray(measurement(np.ascontiguousarray(sums)), dtype=np.int64) -> return np.asarray(measurement(np.ascontiguousarray(sums)), )",
    ): "Whole numbers of Python become int64 by themselves.",
    (
        "data/columns.py",
        "_places",
        "if len(levels) <= _FEW_LEVELS: -> if len(levels) < _FEW_LEVELS:",
    ): "Only how levels are searched: both ways give the same codes, and a test compares them.",
    (
        "data/columns.py",
        "decimals",
        "small = (rest == (low >> 63)[:, None]).all(axis=1) & (np.abs(low) <= _EXACT) & (scale <= _EXACT_POWER) -> small = (rest == (low >> 64)[:, None]).all(axis=1) & (np.abs(low) <= _EXACT) & (scale <= _EXACT_POWER)",
    ): "NumPy shifts the sign in, however far: 0 or -1 as before.",
    (
        "data/columns.py",
        "arrow",
        'values = pa.array(values.astype(object) if values.dtype.kind == "T" else values, from_pandas=True) -> values = pa.array(values.astype(object) if (values.dtype.kind == "T") or True else values, from_pandas=True)',
    ): "Python objects become the same Arrow array, only more slowly.",
    (
        "data/columns.py",
        "arrow",
        'values = pa.array(values.astype(object) if values.dtype.kind == "T" else values, from_pandas=True) -> values = pa.array(values.astype(object) if values.dtype.kind == "XXTXX" else values, from_pandas=True)',
    ): "This PyArrow reads NumPy's strings by itself; older ones need them as objects.",
    (
        "data/sampling.py",
        "chosen",
        "return np.asarray(mixed < np.uint64(min(int(part * 2.0**64), 2**64 - 1))) -> return np.asarray(mixed < np.uint64(min(int(part * 2.0**64), 2**64 - 2)))",
    ): "One number in 2**64 is chosen more or less, still by that number alone.",
    (
        "data/sampling.py",
        "chosen",
        "return np.asarray(mixed < np.uint64(min(int(part * 2.0**64), 2**64 - 1))) -> return np.asarray(mixed <= np.uint64(min(int(part * 2.0**64), 2**64 - 1)))",
    ): "One number in 2**64 is chosen more or less, still by that number alone.",
    (
        "data/backends/cells.py",
        "thresholds",
        "edges = spec.encode(np.array(cut.edges, dtype=np.float64)) -> edges = spec.encode(np.array(cut.edges, ))",
    ): "Edges are floats already.",
    (
        "data/backends/cells.py",
        "_float",
        "return np.where(ordered < 0, -size, size) -> return np.where(ordered < 1, -size, size)",
    ): "A threshold of minus zero is compared like zero.",
    (
        "data/backends/cells.py",
        "_float",
        "return np.where(ordered < 0, -size, size) -> return np.where(ordered <= 0, -size, size)",
    ): "A threshold of minus zero is compared like zero.",
    (
        "privacy/accountant.py",
        "_log_gdp_delta",
        "if a > 40: -> if a >= 40:",
    ): "At 40 itself both are bounds of a delta below the smallest float.",
    (
        "privacy/accountant.py",
        "Profile._ideal_epsilon",
        "if aside >= delta > 0: -> if aside >= delta > 1:",
    ): "Nothing is left for the ideal part then, and the answer is infinite by the way below as well.",
    (
        "ledger/account.py",
        "(module)",
        "_BAR = 32 -> _BAR = 33",
    ): "It is an argument's default, which a function has from the beginning; only how long a bar of text is.",
    (
        "ledger/account.py",
        "Account.largest",
        "low, high = (middle, high) if middle > 0 and fits(middle) else (low, middle) -> low, high = (middle, high) if middle >= 0 and fits(middle) else (low, middle)",
    ): "Forty halves of a cap are not zero.",
    (
        "ledger/account.py",
        "_minus",
        "known = total.mu < math.inf and part.mu < math.inf -> known = total.mu <= math.inf and part.mu < math.inf",
    ): "Infinity less a number is infinite by itself.",
    (
        "data/columns.py",
        "Range.encode",
        "if x.size and not (x.min() >= -1.0 and x.max() <= 1.0): -> if x.size and not (x.min() > -1.0 and x.max() <= 1.0):",
    ): "Numbers that are inside already are clipped once more.",
    (
        "data/columns.py",
        "Levels.is_text",
        "return isinstance(self.levels[0], str) -> return isinstance(self.levels[1], str)",
    ): "Levels are all text or all numbers, and two at least.",
    (
        "data/columns.py",
        "numbers",
        "_check_whole(_numpy(pc.fill_null(column, 0)), name) -> _check_whole(_numpy(pc.fill_null(column, 1)), name)",
    ): "Only whether it is too large is asked of what stands for a missing value.",
    (
        "data/backends/cells.py",
        "stepped",
        'apart = x if steps.origin == 0.0 else dialect.arithmetic("-", x, dialect.constant(steps.origin)) -> apart = x if (steps.origin == 0.0) and False else dialect.arithmetic("-", x, dialect.constant(steps.origin))',
    ): "Zero taken away changes nothing.",
    (
        "data/backends/group_by.py",
        "_calculated",
        "if beside and abs(beside) > 1e-9 < abs(second) < 1e9: -> if beside and abs(beside) > 1e-9 <= abs(second) < 1e9:",
    ): "Only where the short way ends, far from where a product could vanish.",
    (
        "data/backends/group_by.py",
        "_calculated",
        'large = [dialect.compare(side, right, dialect.constant(end)) for side, end in ((">=", 1.0), ("<=", -1.0))] -> large = [dialect.compare(side, right, dialect.constant(end)) for side, end in ((">=", 1.0), ("<=", -2.0))]',
    ): "Over less than two in size, the smallest number is rounded to itself and not to zero.",
    (
        "papers/meta_learners/stages.py",
        "check_ratios",
        "if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 1: -> if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 2:",
    ): "A ratio above one makes the sum of positive ratios larger than one, which is refused below.",
    (
        "privacy/accountant.py",
        "Profile._ideal_inverse",
        "while self._ideal(epsilon) > delta: -> while self._ideal(epsilon) >= delta:",
    ): "At equality one more step is taken, towards privacy.",
    (
        "privacy/sensitivity/sets.py",
        "Interval.grid",
        "return whole(np.clip(steps, -edge, edge, out=steps).sum(keepdims=True)) -> return whole(np.clip(steps, -edge, edge, ).sum(keepdims=True))",
    ): "Only where the numbers are kept.",
    (
        "ledger/charging.py",
        "_bytes",
        'plain = part.dtype.kind in "biuf" -> plain = part.dtype.kind in "XXbiufXX"',
    ): "NumPy has no kind of numbers that is called X.",
    (
        "ledger/account.py",
        "Account._share",
        "return min(1.0, plain, _ratio(total.mu, limit) ** 2) -> return min(2.0, plain, _ratio(total.mu, limit) ** 2)",
    ): "Only the bar on a page: admission has refused whatever exceeds the cap by more than rounding.",
    (
        "ledger/account.py",
        "_events",
        "return tuple(event_from_dict(event) for event in recorded) if recorded else (_charge(request),) -> return tuple(event_from_dict(event) for event in recorded) if (recorded) and False else (_charge(request),)",
    ): "Only a number for people, and towards privacy: the most that a request may spend stands for what it spent.",
    (
        "data/records.py",
        "hold",
        "e=None if e is None else _settled(e, names.e), -> e=None if (e is None) and False else _settled(e, names.e),",
    ): "What is neither an array nor a column of Arrow's stays as it is.",
    (
        "data/columns.py",
        "Range.encode",
        "if x.size and not (self.low <= x.min() and x.max() <= self.high): -> if x.size and not (self.low < x.min() and x.max() <= self.high):",
    ): "Numbers that are inside already are clipped once more.",
    (
        "data/backends/cells.py",
        "tree",
        "half = len(edges) // 2 -> half = len(edges) // 3",
    ): "Only how deep the tree of comparisons is.",
    (
        "data/backends/group_by.py",
        "encoded",
        "if (spec.high - spec.middle) / half <= 1.0 and (spec.low - spec.middle) / half >= -1.0: -> if (spec.high - spec.middle) / half <= 1.0 and (spec.low - spec.middle) / half > -1.0:",
    ): "Numbers that are inside already are clipped once more.",
    (
        "privacy/accountant.py",
        "_gaussian",
        "epsilon=math.inf if mu else 0.0, -> epsilon=math.inf if mu else 1.0,",
    ): "The profile of no noise at all is asked for its ideal and its reach only.",
    (
        "privacy/gate.py",
        "Gate._allot",
        "if asked > left + ROUNDING or left <= 0: -> if asked >= left + ROUNDING or left <= 0:",
    ): "Where exactly a tolerance for rounding ends does not matter.",
    (
        "data/records.py",
        "hold",
        "k=None if k is None else _settled(k, names.k), -> k=None if (k is None) and False else _settled(k, names.k),",
    ): "What is neither an array nor a column of Arrow's stays as it is.",
    (
        "data/records.py",
        "_events",
        "return labels.codes(values, name) -> return labels.codes(values, )",
    ): "The refusal is said in other words, which name the column.",
    (
        "data/columns.py",
        "Levels.codes",
        "part = slice(start, start + _SLICE) -> part = slice(start + _SLICE)",
    ): "Slices then begin with the column every time, and give the same codes again.",
    (
        "data/columns.py",
        "numbers",
        'if isinstance(values, np.ndarray) and values.dtype.kind in "biuf": -> if isinstance(values, np.ndarray) and values.dtype.kind in "XXbiufXX":',
    ): "NumPy has no kind of numbers that is called X.",
    (
        "data/columns.py",
        "numbers",
        'if values.dtype.kind in "iu" and values.dtype.itemsize == 8: -> if values.dtype.kind in "XXiuXX" and values.dtype.itemsize == 8:',
    ): "NumPy has no kind of numbers that is called X.",
    (
        "data/expressions.py",
        "ends",
        "return (0.0 if known[0][0] < 0.0 < known[0][1] else min(squares)), max(squares) -> return (0.0 if known[1][0] < 0.0 < known[0][1] else min(squares)), max(squares)",
    ): "Both arguments of a square are one formula, with the same ends.",
    (
        "data/expressions.py",
        "ends",
        "return (0.0 if known[0][0] < 0.0 < known[0][1] else min(squares)), max(squares) -> return (0.0 if known[0][0] < 0.0 < known[1][1] else min(squares)), max(squares)",
    ): "Both arguments of a square are one formula, with the same ends.",
    (
        "privacy/accountant.py",
        "_log_zcdp_delta",
        "x = max(1e-300, bracket(lambda x: (2 * x + 1) * rho - epsilon - math.log1p(1 / x) < 0, 1.0)[0]) -> x = max(1e-300, bracket(lambda x: (2 * x + 1) * rho - epsilon - math.log1p(1 / x) <= 0, 1.0)[0])",
    ): "Every order gives a valid bound, and the two are neighbouring floats.",
    (
        "ledger/account.py",
        "Account.largest",
        "return low if low > 1e-9 * self.cap.epsilon else 0.0 -> return low if low >= 1e-9 * self.cap.epsilon else 0.0",
    ): "Where exactly a search for advice gives up does not matter; admission decides.",
    (
        "ledger/account.py",
        "Account._tight",
        "tight = max((profile_of(part).epsilon_at(delta) if part else 0.0) for part in events) -> tight = max((profile_of(part).epsilon_at(delta) if (part) or True else 0.0) for part in events)",
    ): "Of no events at all, the composed epsilon is zero as well.",
    (
        "privacy/guarantee.py",
        "_joined",
        "first = guarantees[0] -> first = guarantees[1]",
    ): "All guarantees have to agree in what is taken from the first, and there are two at least.",
    (
        "data/columns.py",
        "Range.__post_init__",
        "if not 0 < high / 2 - low / 2 < math.inf or math.isinf(high - low): -> if not 0 < high / 2 - low / 2 <= math.inf or math.isinf(high - low):",
    ): "Half of a float less half of another is never infinite.",
    (
        "data/columns.py",
        "decimals",
        "small = (rest == (low >> 63)[:, None]).all(axis=1) & (np.abs(low) <= _EXACT) & (scale <= _EXACT_POWER) -> small = (rest == (low >> 63)[:, None]).all(axis=1) & (np.abs(low) <= _EXACT) & (scale < _EXACT_POWER)",
    ): "Only whether Python reads the decimal, which gives the nearest float as well.",
    (
        "data/expressions.py",
        "_folded",
        "nobody = SimpleNamespace(t=np.zeros(1)) -> nobody = SimpleNamespace(t=np.zeros(2))",
    ): "Numbers are the same for every record, and the first one is taken.",
    (
        "data/backends/scan.py",
        "_checksum",
        "mixed += np.right_shift(np.ascontiguousarray(column).view(np.uint64), _SEVEN, out=term) -> mixed -= np.right_shift(np.ascontiguousarray(column).view(np.uint64), _SEVEN, out=term)",
    ): "The checksum is only compared with that of another pass, and depends on the rows as before.",
    (
        "ledger/composition.py",
        "admits",
        "if total.epsilon <= epsilon * _DIGITS and total.delta <= delta * _DIGITS: -> if total.epsilon < epsilon * _DIGITS and total.delta <= delta * _DIGITS:",
    ): "Where exactly a tolerance for rounding ends does not matter.",
    (
        "ledger/account.py",
        "Account._tight",
        "return min(tight, plain) if self.spent.delta <= delta else tight -> return min(tight, plain) if self.spent.delta < delta else tight",
    ): "Only a number for people, and the composed one holds by itself.",
    (
        "data/columns.py",
        "_places",
        "return np.where(levels[nearest] == x, nearest, -1) -> return np.where(levels[nearest] == x, nearest, -2)",
    ): "Whatever is negative stands for a level that was not declared.",
    (
        "data/columns.py",
        "_places",
        "codes = np.full(len(x), -1, dtype=np.int8) -> codes = np.full(len(x), -1, )",
    ): "Only how wide the numbers are on their way into the smallest type that holds them.",
    (
        "data/columns.py",
        "arrow",
        'values = pa.array(values.astype(object) if values.dtype.kind == "T" else values, from_pandas=True) -> values = pa.array(values.astype(object) if (values.dtype.kind == "T") and False else values, from_pandas=True)',
    ): "This PyArrow reads NumPy's strings by itself; older ones need them as objects.",
    (
        "data/backends/cells.py",
        "_ordered",
        "return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF) -> return bits if bits >= 1 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)",
    ): "Only the lowest and the largest float are asked for, never zero.",
    (
        "data/backends/group_by.py",
        "_calculated",
        "if beside and abs(beside) > 1e-9 < abs(second) < 1e9: -> if beside and abs(beside) >= 1e-9 < abs(second) < 1e9:",
    ): "Where exactly a constant is large enough does not matter: products vanish hundreds of powers of ten below.",
    (
        "data/backends/scan.py",
        "_checksum",
        "mixed ^= mixed >> np.uint64(32) -> mixed = mixed >> np.uint64(32)",
    ): "The checksum is only compared with that of another pass, and depends on every value as before.",
    (
        "data/backends/scan.py",
        "Sweep.__call__",
        "sums = added(sums, self.kernel(chunk if self.part is None else whole(chunk))) -> sums = added(sums, self.kernel(chunk if (self.part is None) and False else whole(chunk)))",
    ): "Covariates that are float64 already stay the same numbers.",
    (
        "data/backends/scan.py",
        "_run",
        "with threadpool_limits(1): -> with threadpool_limits(2):",
    ): "Only how many threads a process may use.",
    (
        "privacy/accountant.py",
        "_log_gdp_delta",
        "if mu < 0.1: -> if mu < 1.1:",
    ): "Up to there six nodes are off by less than 1e-10 of delta, of which a millionth is left unspent.",
    (
        "privacy/noise.py",
        "_rounded",
        "inside = np.abs(noise) < float(limit) -> inside = np.abs(noise) <= float(limit)",
    ): "Not harmless: `test_the_largest_sum_and_the_largest_noise_stay_inside_64_bits`, written after this sample, notices it.",
    (
        "data/expressions.py",
        "Formula.__truediv__",
        "if other.constant and math.frexp(other.constant)[0] in (0.5, -0.5) and math.isfinite(1.0 / other.constant): -> if other.constant and math.frexp(other.constant)[0] in (0.5, -0.5) and math.isfinite(2.0 / other.constant):",
    ): "Only whether 2**-1023 divides or its inverse multiplies, which gives the same bits.",
    (
        "data/backends/cells.py",
        "equal_steps",
        "if not len(edges) or width == 0.0 or not low < edges[0] <= edges[-1] < high: -> if not len(edges) or width == 0.0 or not low < edges[0] <= edges[-1] <= high:",
    ): "From an edge at the high end on numbers are in the last part, where those from the high end on are put anyway.",
    (
        "privacy/accountant.py",
        "_log_zcdp_delta",
        "x = max(1e-300, bracket(lambda x: (2 * x + 1) * rho - epsilon - math.log1p(1 / x) < 0, 1.0)[0]) -> x = max(1e-300, bracket(lambda x: (2 * x + 1) * rho - epsilon - math.log1p(1 / x) < 0, 2.0)[0])",
    ): "Where a search begins does not decide where it ends.",
    (
        "privacy/accountant.py",
        "bracket",
        "middle = math.sqrt(low) * math.sqrt(high) if high > 2 * low else (low + high) / 2 -> middle = math.sqrt(low) * math.sqrt(high) if (high > 2 * low) and False else (low + high) / 2",
    ): "Another point between the same ends: the search takes longer, and ends at the same floats.",
    (
        "privacy/query.py",
        "unit_sums",
        "return np.asarray(np.bincount(places, weights=values[order]), dtype=np.float64) -> return np.asarray(np.bincount(places, weights=values[order]), )",
    ): "Weighted counts are 64-bit floats already.",
    (
        "privacy/sensitivity/fixed_point.py",
        "(module)",
        "GRID_BITS = 40 -> GRID_BITS = 41",
    ): "A finer grid has larger diameters and noise in its own steps; the bits of sums are checked against what 64 bits hold.",
    (
        "data/backends/sql.py",
        "group_query",
        'outer = Named("k", "a", "y", None if named.e is None else "e") -> outer = Named("XXkXX", "a", "y", None if named.e is None else "e")',
    ): "A name inside one query, that only that query uses.",
    (
        "data/backends/base.py",
        "unusable",
        "return Groups(np.zeros((1, 2), dtype=np.int64), (), usable=False) -> return Groups(np.zeros((2, 2), dtype=np.int64), (), usable=False)",
    ): "Counts of a table that is refused are not read.",
    (
        "privacy/gate.py",
        "Gate.joins_rows",
        "return self.most_rows > 1 and self._records.by_unit() is not None -> return self.most_rows >= 1 and self._records.by_unit() is not None",
    ): "Where units have one row each, their sums are the rows.",
    (
        "privacy/sensitivity/sets.py",
        "Statistic.__post_init__",
        'if not isinstance(self.proof, str) or not self.proof.endswith(".md"): -> if not isinstance(self.proof, str) and not self.proof.endswith(".md"):',
    ): "Not harmless: `test_a_statistic_names_the_file_that_proves_how_far_it_moves`, written after this sample, notices it.",
    (
        "data/views/capped.py",
        "Capped.of",
        "return cls(cap, float(declared.outcome_range.encode(np.array([cap], dtype=np.float64))[0])) -> return cls(cap, float(declared.outcome_range.encode(np.array([cap], ))[0]))",
    ): "A cap is a float already.",
    (
        "data/views/viewed.py",
        "ViewedRecords.sample",
        "some = self.source.sample(part, rows, progress) -> some = self.source.sample(part, progress)",
    ): "Not harmless: `test_a_capped_sample_is_that_of_the_source_as_it_was_asked_for`, written after this sample, notices it.",
    (
        "data/in_memory.py",
        "ArrayRecords.by_unit",
        "if self.units is None or self.unit is None or self.unit.max_rows > CHUNK_ROWS: -> if self.units is None or self.unit is None or self.unit.max_rows >= CHUNK_ROWS:",
    ): "Units that fill a chunk by themselves get the wider interval of rows that stay apart, which is proved too.",
    (
        "data/in_memory.py",
        "_taken",
        "e, k = (None if each is None else taken(each) for each in (held.e, held.k)) -> e, k = (None if (each is None) or True else taken(each) for each in (held.e, held.k))",
    ): "Not harmless: `test_rows_brought_together_keep_their_probabilities_and_sample_numbers`, written after this sample, notices it.",
    (
        "data/columns.py",
        "Levels._match",
        "found = pc.fill_null(pc.index_in(column, value_set=pa.array(self.levels, pa.large_string())), -1) -> found = pc.fill_null(pc.index_in(column, value_set=pa.array(self.levels, pa.large_string())), -2)",
    ): "Any number below zero says that a value is none of the levels.",
    (
        "data/columns.py",
        "arrow",
        'values = pa.array(values.astype(object) if values.dtype.kind == "T" else values, from_pandas=True) -> values = pa.array(values.astype(object) if values.dtype.kind != "T" else values, from_pandas=True)',
    ): "Objects give the same column as the array itself; this version of Arrow reads NumPy's strings without a detour.",
    (
        "data/backends/cells.py",
        "equal_steps",
        "if not len(edges) or width == 0.0 or not low < edges[0] <= edges[-1] < high: -> if not len(edges) or width == 0.0 and not low < edges[0] <= edges[-1] < high:",
    ): "Where rounding puts an edge on an end, the numbers tried around each edge decide.",
    (
        "data/backends/cells.py",
        "_ordered",
        "return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF) -> return bits if bits > 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)",
    ): "Zero is the same from both sides.",
    (
        "data/backends/group_by.py",
        "_calculated",
        "if beside and abs(beside) > 1e-9 < abs(second) < 1e9: -> if beside and abs(beside) > 1e-9 < abs(second) < 1000000001.0:",
    ): "Which of two ways to the same number is taken, far from where either loses digits.",
    (
        "data/backends/group_by.py",
        "_calculated",
        'large = [dialect.compare(side, right, dialect.constant(end)) for side, end in ((">=", 1.0), ("<=", -1.0))] -> large = [dialect.compare(side, right, dialect.constant(end)) for side, end in ((">=", 2.0), ("<=", -1.0))]',
    ): "Divided by less than two, not even the smallest number rounds to zero.",
    (
        "data/backends/base.py",
        "unusable",
        "return Groups(np.zeros((1, 2), dtype=np.int64), (), usable=False) -> return Groups(np.zeros((1, 3), dtype=np.int64), (), usable=False)",
    ): "Counts of a table that is refused are not read.",
}
