"""Several arms: how often intervals of contrasts hold the truth, and how wide they are on real trials."""
