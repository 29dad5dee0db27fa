"""What notebooks show of releases."""
