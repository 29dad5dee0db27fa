"""Time to event, from released tables: hazards, survival curves with bands, and the pseudo-outcomes of records."""
