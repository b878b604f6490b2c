"""How the errors of DigitalOcean's API become the kit's classes.

An error has a status, an `id` and a `message`. Most refusals are 422 with nothing but the message
to tell them apart. The SDK is not imported here: its errors are recognised by what they carry.
"""

import re
from collections.abc import Mapping
from typing import Any

from bigfleet_providerkit import (
    InvalidRequest,
    OutOfCapacity,
    QuotaExceeded,
    Retryable,
    SubstrateError,
    Unauthorized,
)
from bigfleet_providerkit.calls.http_errors import classify_http, pause_of

NO_STOCK = re.compile(r"\b(size|region|plan)\b.*\b(not available|unavailable|sold out)", re.I)
NO_QUOTA = re.compile(r"limit|billing|payment|restricted|verif", re.I)
BUSY = re.compile(r"pending event|locked|currently", re.I)
SCOPES = {
    ("POST", "droplets"): "droplet:create", ("GET", "droplets"): "droplet:read",
    ("DELETE", "droplets"): "droplet:delete", ("POST", "actions"): "droplet:update",
    ("POST", "tags"): "tag:create", ("POST", "resources"): "tag:create",
    ("DELETE", "resources"): "tag:delete", ("DELETE", "tags"): "tag:delete",
    ("GET", "tags"): "tag:read",
    ("GET", "sizes"): "sizes:read, regions:read",
}  # fmt: skip
"""The scopes of a token, by method and kind of object."""


class NotFoundError(Exception):
    """An answer 404, which the SDK hands out like any other answer."""

    status_code = 404


def classify(error: BaseException) -> SubstrateError | None:
    """The class of an error; None for what DigitalOcean never said."""
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return None
    answer = getattr(error, "response", None)
    text = f"{status} {_message(answer) or error}"
    if status == 401:
        return Unauthorized(f"check DIGITALOCEAN_TOKEN: {text}")
    if status == 403:
        return Unauthorized(f"the token lacks the scope {_scope(answer)}: {text}")
    if status in (400, 422):
        return _refused(text)
    after = pause_of(getattr(answer, "headers", {}), reset="ratelimit-reset")
    return classify_http(status, text, after=after)


def _refused(text: str) -> SubstrateError:
    if BUSY.search(text) and not NO_QUOTA.search(text):
        return Retryable(text, refused=True)
    if NO_STOCK.search(text):
        return OutOfCapacity(text)
    return QuotaExceeded(text) if NO_QUOTA.search(text) else InvalidRequest(text)


def _message(answer: Any) -> str:
    try:
        body = answer.json()
    except (AttributeError, ValueError):
        return ""
    return str(body.get("message", body)) if isinstance(body, Mapping) else str(body)


def _scope(answer: Any) -> str:
    request = getattr(answer, "request", None)
    method, parts = str(getattr(request, "method", "")), str(getattr(request, "url", ""))
    known = (SCOPES.get((method, part)) for part in re.split("[/?]", parts)[::-1])
    return next((scope for scope in known if scope), "that this call needs")
