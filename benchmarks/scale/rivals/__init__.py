"""Other private systems. Nothing is imported here: their modules run where only their own package is installed."""
