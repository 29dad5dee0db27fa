"""The service's own site, asked by the client."""

import pytest

from discreet.client import Client
from tests.serve.conftest import site  # noqa: F401 - the same service as in tests of the interface


@pytest.fixture
def connect(site):  # noqa: F811
    """Makes a client for somebody; requests reach the application without a network."""

    def connected(person="analyst", patience=20.0, token=None):
        return Client("http://localhost", token=token or site.tokens[person], patience=patience, http=site.client)

    return connected
