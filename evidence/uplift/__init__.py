"""Effects by segment: ``python -m evidence.uplift``."""
