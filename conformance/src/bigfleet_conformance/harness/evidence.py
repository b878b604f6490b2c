"""Evidence: what one behaviour did and saw, kept small and free of secrets.

Reads are noted when they show something new, so that a poll of a second is not two hundred lines.
Values of more than 64 bytes become their length and hash. Blobs, keys and certificates never come
here: the calls do not hand them over.
"""

import hashlib
from dataclasses import dataclass, field

MOST_ENTRIES = 200
LONGEST_VALUE = 64


def short(value: str) -> str:
    """A value as it may be shown: itself, or its length and hash."""
    raw = value.encode("utf-8", "surrogatepass")
    if len(raw) <= LONGEST_VALUE:
        return value
    return f"{len(raw)} bytes, sha256 {hashlib.sha256(raw).hexdigest()}"


@dataclass(slots=True)
class Entry:
    """One call: when, what, with which token, and what came back."""

    time_s: float
    method: str
    machine: str = ""
    token: str = ""
    code: str = ""
    state: str = ""
    expected: str = ""

    def as_json(self) -> dict[str, str | float]:
        """The entry for the report, without what is empty."""
        fields = {
            "method": self.method,
            "machine": self.machine,
            "token": self.token,
            "code": self.code,
            "state": self.state,
            "expected": self.expected,
        }
        return {"time_s": round(self.time_s, 4), **{k: v for k, v in fields.items() if v}}


@dataclass(slots=True)
class Evidence:
    """The calls of one behaviour, the newest 200; a finding is about the last ones."""

    entries: list[Entry] = field(default_factory=list)
    _last_read: dict[str, tuple[str, str]] = field(default_factory=dict)

    def note(self, entry: Entry) -> Entry:
        """Keep an entry, and drop the oldest when there are too many."""
        if len(self.entries) >= MOST_ENTRIES:
            del self.entries[0]
        self.entries.append(entry)
        return entry

    def note_read(self, entry: Entry) -> None:
        """Keep a read if it shows another code or state of that machine than the one before."""
        seen = (entry.code, entry.state)
        if self._last_read.get(entry.machine) != seen:
            self._last_read[entry.machine] = seen
            self.note(entry)
