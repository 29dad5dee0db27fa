"""Public facts about records, and records clipped and encoded by them. Nothing here knows of privacy."""
