"""Inner loops of passes over records, compiled where a C compiler is at hand; NumPy has the same integers without."""
