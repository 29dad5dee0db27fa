"""The curator's service, measured: ``python -m evidence.service``."""
