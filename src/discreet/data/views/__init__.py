"""Records seen in another way: through a map of single records, such as a cap; covariates as codes."""
