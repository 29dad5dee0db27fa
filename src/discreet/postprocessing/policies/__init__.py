"""Whom to treat, from released effects: the choice, and what its own gain is worth after it was chosen."""
