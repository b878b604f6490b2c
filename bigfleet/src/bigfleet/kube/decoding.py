"""Bytes of an API server into structs, so that one odd object never hides the others.

A page is decoded in one go; only when that fails is it taken apart, object by object, and what
cannot be read is named in `bad`. The same holds for single events of a watch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar, cast

import msgspec

from bigfleet.kube.errors import ApiStatus, DecodeError, error_of
from bigfleet.kube.objects import Meta

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BadObject:
    """An object that is not what its kind should be."""

    metadata: Meta
    problem: str


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """A part of a list."""

    items: list[T]
    version: str
    """The resource version from which a watch continues."""
    token: str = ""
    """Asks for the next page; empty on the last."""
    bad: tuple[BadObject, ...] = ()


class EventKind(Enum):
    """What a watch says."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    """Nothing happened up to this resource version."""
    BAD = "BAD"
    """Something happened to an object that cannot be read; ours, not on the wire."""


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One change."""

    kind: EventKind
    version: str
    object: T | None = None
    bad: BadObject | None = None


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct, Generic[T], frozen=True):
    items: list[T] | None = None
    metadata: _ListMeta = _ListMeta()


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Name(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Named(msgspec.Struct, frozen=True, gc=False):
    metadata: _Name = _Name()


class _VersionMeta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    resource_version: str = ""


class _Versioned(msgspec.Struct, frozen=True, gc=False):
    metadata: _VersionMeta = _VersionMeta()


_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError)
"""No JSON, not what was expected, or no text."""

# Building a decoder takes longer than using it. Typed by the functions that fill them.
_DECODERS: Final[dict[type, object]] = {}
_LIST_DECODERS: Final[dict[type, object]] = {}


def _decoder(struct: type[T]) -> msgspec.json.Decoder[T]:
    if struct not in _DECODERS:
        _DECODERS[struct] = msgspec.json.Decoder(struct)
    return cast("msgspec.json.Decoder[T]", _DECODERS[struct])


def _list_decoder(struct: type[T]) -> msgspec.json.Decoder[_List[T]]:
    if struct not in _LIST_DECODERS:
        _LIST_DECODERS[struct] = msgspec.json.Decoder(_List[struct])  # type: ignore[valid-type]
    return cast("msgspec.json.Decoder[_List[T]]", _LIST_DECODERS[struct])


def decode(body: bytes | msgspec.Raw, struct: type[T]) -> T:
    """One object."""
    if struct is msgspec.Raw:
        return cast(T, msgspec.Raw(body))
    try:
        return _decoder(struct).decode(body)
    except _UNREADABLE as error:
        raise DecodeError(f"an answer is no {struct.__name__}: {error}") from error


def decode_page(body: bytes, struct: type[T]) -> ListPage[T]:
    """A page of a list."""
    try:
        found = _list_decoder(struct).decode(body)
    except (msgspec.ValidationError, UnicodeDecodeError):
        return _decode_one_by_one(body, struct)
    except msgspec.DecodeError as error:
        raise DecodeError(f"a list of {struct.__name__} cannot be read: {error}") from error
    return ListPage(found.items or [], found.metadata.resource_version, found.metadata.continue_)


def _decode_one_by_one(body: bytes, struct: type[T]) -> ListPage[T]:
    try:
        found = _list_decoder(msgspec.Raw).decode(body)
    except _UNREADABLE as error:
        raise DecodeError(f"a list of {struct.__name__} cannot be read: {error}") from error
    items: list[T] = []
    bad: list[BadObject] = []
    for raw in found.items or []:
        try:
            items.append(_decoder(struct).decode(raw))
        except _UNREADABLE as error:
            bad.append(BadObject(_metadata_of(raw), str(error)))
    return ListPage(items, found.metadata.resource_version, found.metadata.continue_, tuple(bad))


def decode_event(line: bytes, struct: type[T]) -> WatchEvent[T]:
    """A line of a watch; an ERROR event is raised as the error that it reports."""
    try:
        event = _decoder(_Event).decode(line)
        if event.type == "ERROR":
            raise error_of(_decoder(ApiStatus).decode(event.object))
        kind = EventKind(event.type)
        version = _decoder(_Versioned).decode(event.object).metadata.resource_version
    except (msgspec.DecodeError, ValueError) as error:
        raise DecodeError(f"a watch sent {line[:200]!r}: {error}") from error
    if kind is EventKind.BOOKMARK:
        return WatchEvent(kind, version)
    try:
        return WatchEvent(kind, version, _decoder(struct).decode(event.object))
    except _UNREADABLE as error:
        bad = BadObject(_metadata_of(event.object), str(error))
        return WatchEvent(EventKind.BAD, version, bad=bad)


def _metadata_of(raw: msgspec.Raw) -> Meta:
    """Which object it is, of all that its metadata says: the trouble may be in the rest."""
    try:
        name = _decoder(_Named).decode(raw).metadata
    except _UNREADABLE:
        return Meta()
    return Meta(name=name.name, namespace=name.namespace, uid=name.uid)
