"""Effects on a time to event."""
