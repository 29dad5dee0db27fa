"""What really leaks: ``python -m evidence.audit``."""
