"""What tests of the Kubernetes client share."""

from collections.abc import AsyncIterator

import pytest

from api_server import ApiServer, api_server


@pytest.fixture
async def api() -> AsyncIterator[ApiServer]:
    async with api_server() as server:
        yield server
