"""Seeds of the noise in runs."""

from zlib import crc32


def noise_seed(first: int, cell: str, replication: int) -> int:
    """A stream of noise for each cell, from the paper's first seed on, so that cells do not err together."""
    return first + 10_000 * (crc32(cell.encode()) % 100_000) + replication
