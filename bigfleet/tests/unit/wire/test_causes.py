"""Why a call failed is told in our words, and a peer's own words are left as they are."""

import pytest

from bigfleet.wire.tls_diagnosis import shortly

REFUSED = (
    "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect "
    "to remote host: connect: Connection refused (111)"
)


@pytest.mark.parametrize(
    ("code", "detail", "words"),
    [
        ("UNAVAILABLE", REFUSED, "no process listens there"),
        ("UNAVAILABLE", "DNS resolution failed for x:1", "the name cannot be resolved"),
        ("UNAVAILABLE", "errors resolving a=b:1: [x]", "the name cannot be resolved"),
        ("UNAVAILABLE", "the leader\nis being elected", "the leader is being elected"),
        ("UNAVAILABLE", "", "no connection"),
        ("DEADLINE_EXCEEDED", "", "no answer in time"),
        ("INVALID_ARGUMENT", "as told", "as told"),
        ("DATA_LOSS", "", "DATA_LOSS"),
        ("", "", ""),
    ],
)
def test_a_failed_call_in_a_few_words(code: str, detail: str, words: str) -> None:
    assert shortly(code, detail) == words
