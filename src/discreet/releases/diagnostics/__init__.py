"""What releases say of balance, overlap and omitted confounders: all of it from released numbers."""
