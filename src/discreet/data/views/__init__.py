"""Records seen in another way: outcomes capped, covariates as codes."""
