"""Average effects with private confidence intervals."""
