"""Effects as functions: ``python -m evidence.effects``."""
