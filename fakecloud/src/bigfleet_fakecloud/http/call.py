"""A call and its reply, as a page sees them: plain values, read strictly.

A page asks a call for what it needs and in which type; what the cloud's SDK would never send is a
`BadRequest`, so a provider's mistake does not pass for success.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode

from bigfleet_fakecloud.errors import BadRequest


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered. A body of bytes goes out as it is, everything else as JSON."""

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> tuple[bytes, str]:
        """The bytes and their type."""
        if self.body is None:
            return b"", "application/json"
        if isinstance(self.body, bytes):
            return self.body, "application/octet-stream"
        return json.dumps(self.body, separators=(",", ":")).encode(), "application/json"


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `params` are the placeholders of its route.

    `query` has the last value of each name; `pairs` has all of them in their order, for clouds that
    repeat a name (`label=a&label=b`). `origin` is the address at which the caller found the cloud.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    params: Mapping[str, str] = field(default_factory=dict)
    pairs: Sequence[tuple[str, str]] = ()
    origin: str = ""

    def values(self, name: str) -> list[str]:
        """All values of a name of the query, in their order."""
        if not self.pairs:
            return [self.query[name]] if name in self.query else []
        return [value for key, value in self.pairs if key == name]

    def url(self, **changed: object) -> str:
        """The address of this call with some parameters of the query replaced; None removes one."""
        pairs = list(self.pairs) or list(self.query.items())
        kept = [(key, value) for key, value in pairs if key not in changed]
        kept += [(key, str(value)) for key, value in changed.items() if value is not None]
        return f"{self.origin}{self.path}" + (f"?{urlencode(kept)}" if kept else "")

    def json(self) -> dict[str, object]:
        """The body as a JSON object; an empty one is empty."""
        if not self.body:
            return {}
        try:
            value: object = json.loads(self.body)
        except ValueError:
            raise BadRequest("the body is not JSON") from None
        if not isinstance(value, dict):
            raise BadRequest("the body is not a JSON object")
        return {str(key): item for key, item in value.items()}

    def form(self) -> dict[str, str]:
        """The body as a form, the last value of each name."""
        try:
            pairs = parse_qs(self.body.decode(), keep_blank_values=True)
        except UnicodeDecodeError:
            raise BadRequest("the body is not a form") from None
        return {key: values[-1] for key, values in pairs.items()}

    def only(self, *names: str) -> dict[str, object]:
        """The JSON body, when it has no other fields than these."""
        body = self.json()
        unknown = sorted(set(body) - set(names))
        if unknown:
            raise BadRequest(f"{self.method} {self.path} has no field {', '.join(unknown)}")
        return body

    def number(self, name: str, usual: int) -> int:
        """A whole number of the query."""
        text = self.query.get(name)
        if text is None:
            return usual
        try:
            return int(text)
        except ValueError:
            raise BadRequest(f"{name} is a whole number, not {text!r}") from None


def text_of(body: Mapping[str, object], name: str) -> str:
    """A field that must be there and be text."""
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise BadRequest(f"{name} is a text, not {value!r}")
    return value


def texts_of(body: Mapping[str, object], name: str) -> dict[str, str]:
    """A map of texts; none is empty."""
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequest(f"{name} is a map of texts, not {value!r}")
    if not all(isinstance(key, str) and isinstance(item, str) for key, item in value.items()):
        raise BadRequest(f"{name} is a map of texts, not {value!r}")
    return dict(value)
