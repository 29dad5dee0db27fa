"""What releases are made of: the uncertainty of an average, the means of its arms and their ratios."""
