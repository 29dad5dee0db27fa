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
        "return log_density + math.log(min(mu / (1 + a * a), 1 / a)) -> return log_density + math.log(min(mu / (1 + a / a), 1 / a))",
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
        "ledger/account.py",
        "_charge",
        "return GaussianEvent(name=name, diameter=cost.mu, sigma=1.0, dimension=1, lattice=False) -> return GaussianEvent(name=name, diameter=cost.mu, sigma=1.0, dimension=2, lattice=False)",
    ): "Without a lattice no slack is computed, and nothing else depends on the dimension.",
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
        "privacy/gate.py",
        "_rows",
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
        "ledger/state.py",
        "_exceeded",
        "spent = max(0.0, total.epsilon - cost.epsilon), max(0.0, total.delta - cost.delta) -> spent = max(0.0, total.epsilon - cost.epsilon), max(0.0, total.delta + cost.delta)",
    ): "Only a number in the words of a refusal.",
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
}
