"""Sizes for people: exact while short, else rounded to a tenth of the largest unit."""

import pytest

from bigfleet.model.amounts.resources import readable


@pytest.mark.parametrize(
    ("resource", "text", "shown"),
    [
        ("memory", "400Gi", "400Gi"),
        ("memory", "429496729600m", "409.6Mi"),
        ("memory", "429496729600", "400Gi"),
        ("memory", "1536Mi", "1536Mi"),
        ("ephemeral-storage", "123456789", "117.7Mi"),
        ("cpu", "1234567m", "1234567m"),
        ("memory", "no amount", "no amount"),
    ],
)
def test_a_size_is_read_at_a_glance(resource: str, text: str, shown: str) -> None:
    assert readable(resource, text) == shown
