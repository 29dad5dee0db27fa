"""Average effects: coverage, widths and limits of `discreet.ATE` beside methods without privacy."""
