"""Answers: JSON with an ETag, compressed where that helps; errors as {"error"}."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Awaitable, Callable, Collection
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bigfleet_dashboard.errors import BadRequestError

_WORTH_COMPRESSING: Final = 1024
_LEVEL: Final = 5
_encode = msgspec.json.Encoder().encode
Handler = Callable[[Request], Awaitable[Response]]


def answer(request: Request, document: object, status: int = 200) -> Response:
    """A document; nothing but 304 when the asker has it."""
    body = _encode(document)
    headers = {"Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    tag = f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    if status == 200:
        headers["ETag"] = tag
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
    if len(body) >= _WORTH_COMPRESSING and "gzip" in request.headers.get("accept-encoding", ""):
        body = gzip.compress(body, _LEVEL, mtime=0)
        headers["Content-Encoding"] = "gzip"
    return Response(body, status, headers, "application/json")


def refusal(request: Request, text: str, status: int) -> Response:
    """Why there is no answer."""
    return answer(request, {"error": text}, status)


def taking(names: Collection[str], handler: Handler) -> Handler:
    """A handler that is asked with these names in the query, and no others."""

    async def checked(request: Request) -> Response:
        for name in request.query_params:
            if name not in names:
                there = f"use {', '.join(names)}" if names else "this address takes none"
                raise BadRequestError(f"{name[:60]!r} is not a parameter of this address: {there}")
        return await handler(request)

    return checked


def whole(request: Request, name: str, default: int, most: int) -> int:
    """A whole number of the query."""
    text = request.query_params.get(name)
    if text is None or text == "":
        return default
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value <= most:
        raise BadRequestError(f"{name}={text!r}: give a whole number from 0 to {most}")
    return value


def text(request: Request, name: str) -> str:
    """A text of the query."""
    value = request.query_params.get(name, "")
    if len(value) > 253:
        raise BadRequestError(f"{name} is longer than 253 characters")
    return value


def one_of(request: Request, name: str, known: Collection[str]) -> str:
    """One of a few texts of the query; empty where it is not said."""
    value = text(request, name)
    if value and value not in known:
        raise BadRequestError(f"{name}={value!r}: use one of {', '.join(known)}")
    return value
