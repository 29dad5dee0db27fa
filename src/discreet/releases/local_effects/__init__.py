"""Effects on compliers as they are published: quotients, whose intervals may be unbounded."""
