"""The fleet that commands are tried on."""

from collections.abc import Iterator

import pytest

from ctlworld import World, world


@pytest.fixture
def fleet() -> Iterator[World]:
    with world() as made:
        yield made
