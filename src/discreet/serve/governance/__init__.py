"""What no curator does alone, where records may be, and what the log tells of people."""
