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
        "parallel",
        "epsilon = max((guarantee.epsilon for guarantee in guarantees), default=0.0) -> epsilon = max((guarantee.epsilon for guarantee in guarantees), )",
    ): "Without any guarantee the event of no parts is refused on the line above.",
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
        "data/expressions.py",
        "_folded",
        "nobody = SimpleNamespace(y=np.zeros(1), t=np.zeros(1), x=np.zeros((1, 0)), e=None) -> nobody = SimpleNamespace(y=np.zeros(1), t=np.zeros(1), x=np.zeros((2, 0)), e=None)",
    ): "A formula of numbers alone looks at no covariate.",
    (
        "privacy/guarantee.py",
        "parallel",
        "epsilon = max((guarantee.epsilon for guarantee in guarantees), default=0.0) -> epsilon = max((guarantee.epsilon for guarantee in guarantees), default=1.0)",
    ): "Without any guarantee the event of no parts is refused on the line above.",
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
        "privacy/noise.py",
        "discrete_laplace",
        "return _rounded(sums, generator.laplace(0.0, scale, sums.shape)) -> return _rounded(sums, generator.laplace(1.0, scale, sums.shape))",
    ): "One grid step beside a scale of at least 2**24 steps, and in seeded noise only, which is never private.",
    (
        "privacy/noise.py",
        "published_gamma",
        "direction = generator.normal(0.0, 1.0, size) -> direction = generator.normal(0.0, 2.0, size)",
    ): "Only the direction of the vector is used.",
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
}
