"""A curator's service, asked from Python: the same objects as in the library, computed where the records are."""

from discreet.client.client import Client, ServiceDataset, ServiceJob

__all__ = ["Client", "ServiceDataset", "ServiceJob"]
