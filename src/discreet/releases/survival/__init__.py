"""What is published of a time to event: an effect, and a survival curve per arm."""
