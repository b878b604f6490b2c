"""Where facts come from, and how well: each source with its state, and what to do when it fails.

A source that is not configured is not an error: it says which flag would configure it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

OK, FAILING, OFF, WAITING = "ok", "failing", "off", "waiting"


@dataclass(frozen=True, slots=True)
class Source:
    """One source."""

    name: str
    state: str
    text: str
    remedy: str = ""

    def document(self) -> dict[str, object]:
        """As the API shows it."""
        return {
            "name": self.name,
            "state": self.state,
            "text": self.text,
            "remedy": self.remedy or None,
        }


@dataclass(slots=True)
class SourceBook:
    """All sources, in the order they were first spoken of."""

    _sources: dict[str, Source] = field(default_factory=dict)

    def tell(self, name: str, state: str, text: str, remedy: str = "") -> bool:
        """How a source is; whether that is news."""
        reported = Source(name, state, text, remedy)
        news = self._sources.get(name) != reported
        self._sources[name] = reported
        return news

    def state(self, name: str) -> str:
        """How a source is."""
        found = self._sources.get(name)
        return found.state if found else OFF

    def documents(self) -> list[dict[str, object]]:
        """As the API shows them."""
        return [source.document() for source in self._sources.values()]
