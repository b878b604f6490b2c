"""Why a Create failed: the classes, and how a provider's answer is one of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import grpc


class CreateFailure(StrEnum):
    """The values of the label `reason` of `create_failures_total`."""

    OUT_OF_CAPACITY = "out_of_capacity"
    QUOTA = "quota"
    THROTTLED = "throttled"
    BAD_REQUEST = "bad_request"
    UNAVAILABLE = "unavailable"


F = CreateFailure

_BY_WORD: Final = {
    "OutOfCapacity": F.OUT_OF_CAPACITY,
    "QuotaExceeded": F.QUOTA,
    "Throttled": F.THROTTLED,
    "Unauthorized": F.BAD_REQUEST,
    "InvalidRequest": F.BAD_REQUEST,
}
_BY_CODE: Final = {
    grpc.StatusCode.RESOURCE_EXHAUSTED: F.THROTTLED,
    grpc.StatusCode.INVALID_ARGUMENT: F.BAD_REQUEST,
    grpc.StatusCode.PERMISSION_DENIED: F.BAD_REQUEST,
    grpc.StatusCode.UNAUTHENTICATED: F.BAD_REQUEST,
}


def class_of_error(last_error: str) -> CreateFailure:
    """What a FAILED record tells by its first word; unknown words are `unavailable`."""
    return _BY_WORD.get(last_error.partition(":")[0].strip(), F.UNAVAILABLE)


def class_of_code(code: grpc.StatusCode) -> CreateFailure:
    """What a refused Create tells by its status."""
    return _BY_CODE.get(code, F.UNAVAILABLE)
