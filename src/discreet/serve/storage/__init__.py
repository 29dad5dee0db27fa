"""Where the service keeps what it must remember."""
