"""The class of an error that came over HTTP: a status, perhaps a code, perhaps a pause.

What a status says is the same for every cloud; what a code says is a table of the provider, and
wins: a 403 may be a quota, a 400 a lack of stock.
"""

import time
from collections.abc import Mapping

from bigfleet_providerkit.errors import (
    Gone,
    InvalidRequest,
    QuotaExceeded,
    Retryable,
    SubstrateError,
    Unauthorized,
)

CREDENTIALS = frozenset({401, 403})
GONE = frozenset({404, 410})
NEVER = frozenset({400, 405, 411, 413, 414, 415, 422})
"""The same request will always get this answer."""
PAYMENT, THROTTLED = 402, 429


def classify_http(
    status: int,
    text: str,
    *,
    code: str = "",
    codes: Mapping[str, type[SubstrateError]] | None = None,
    after: float | None = None,
) -> SubstrateError:
    """The class of an answer. `codes` has the classes of the provider's own codes; `Retryable`
    among them means that the object was busy, so that nothing was done. `after` is the pause that
    the answer asks for, in seconds (`pause_of`)."""
    known = (codes or {}).get(code)
    if status == THROTTLED:
        return Retryable(text, throttled=True, after=after)
    if known is not None:
        if issubclass(known, Retryable):
            return Retryable(text, refused=True, after=after)
        return known(text)
    if status in CREDENTIALS:
        return Unauthorized(text)
    if status in GONE:
        return Gone(text)
    if status in NEVER:
        return InvalidRequest(text)
    if status == PAYMENT:
        return QuotaExceeded(text)
    return Retryable(text, refused=400 <= status < 500, after=after)


def bad_certificate(error: BaseException) -> Unauthorized | None:
    """A certificate that was not believed, as a clock that is off makes every one look."""
    if "CERTIFICATE_VERIFY_FAILED" not in str(error):
        return None
    return Unauthorized(
        f"{error}; check this machine's clock (NTP), and the authorities that it trusts where a "
        "proxy has one of its own (SSL_CERT_FILE, REQUESTS_CA_BUNDLE)"
    )


def pause_of(headers: Mapping[str, str], *, reset: str = "") -> float | None:
    """The seconds that an answer asks for: Retry-After as a number, or `reset`, the name of a
    header with the Unix time from which calls are taken again. None without either."""
    given = {name.lower(): value for name, value in headers.items()}
    seconds = _number(given.get("retry-after"))
    if seconds is not None:
        return max(0.0, seconds)
    until = _number(given.get(reset.lower())) if reset else None
    return None if until is None else max(1.0, until - time.time())


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
