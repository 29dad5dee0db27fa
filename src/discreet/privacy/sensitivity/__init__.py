"""Sets that one record's contribution is forced into, and how far sums over records can move."""
