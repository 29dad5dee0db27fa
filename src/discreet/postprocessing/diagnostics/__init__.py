"""How arms differ in their covariates, and how far they overlap, by what was released for other purposes."""
