"""What an HTTP status says is the same for every cloud; a provider's own codes win."""

import time

import pytest

from bigfleet_providerkit import (
    Gone,
    InvalidRequest,
    OutOfCapacity,
    QuotaExceeded,
    Retryable,
    SubstrateError,
    Unauthorized,
)
from bigfleet_providerkit.calls.http_errors import classify_http, pause_of

CODES = {"sold_out": OutOfCapacity, "no_credit": QuotaExceeded, "locked": Retryable}


@pytest.mark.parametrize(
    ("status", "wanted"),
    [(400, InvalidRequest), (401, Unauthorized), (402, QuotaExceeded), (403, Unauthorized),
     (404, Gone), (405, InvalidRequest), (410, Gone), (413, InvalidRequest), (422, InvalidRequest)],
)  # fmt: skip
def test_a_status_has_its_class(status: int, wanted: type[SubstrateError]) -> None:
    found = classify_http(status, "words")
    assert type(found) is wanted
    assert str(found) == "words"


def test_only_an_answer_of_5xx_may_have_had_an_effect() -> None:
    for status in range(400, 600):
        found = classify_http(status, "words")
        if isinstance(found, Retryable):
            assert found.refused == (status < 500), status


def test_a_throttled_call_says_how_long_to_wait() -> None:
    found = classify_http(429, "slow down", code="no_credit", codes=CODES, after=7.0)
    assert isinstance(found, Retryable)
    assert (found.throttled, found.after) == (True, 7.0)


def test_a_code_of_the_provider_wins_over_the_status() -> None:
    assert type(classify_http(400, "x", code="sold_out", codes=CODES)) is OutOfCapacity
    assert type(classify_http(403, "x", code="no_credit", codes=CODES)) is QuotaExceeded
    busy = classify_http(422, "x", code="locked", codes=CODES)
    assert isinstance(busy, Retryable)
    assert busy.refused
    assert type(classify_http(404, "x", code="other", codes=CODES)) is Gone


def test_a_pause_is_read_from_either_header() -> None:
    assert pause_of({"Retry-After": "3"}) == 3.0
    assert pause_of({"retry-after": "-3"}) == 0.0
    assert pause_of({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}) is None
    assert pause_of({}) is None
    later = pause_of({"RateLimit-Reset": str(time.time() + 60)}, reset="ratelimit-reset")
    assert later is not None
    assert 58 < later <= 60
    assert pause_of({"ratelimit-reset": "1"}, reset="ratelimit-reset") == 1.0
