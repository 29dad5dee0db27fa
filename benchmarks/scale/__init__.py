"""Large tables: ``python -m benchmarks.scale``."""
