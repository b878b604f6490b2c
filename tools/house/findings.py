"""What a rule reports, and the backlog of places that are not clean yet."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

BACKLOG = Path(__file__).parent / "backlog.txt"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One broken rule. `rule` and `key` are its line in the backlog; `text` is for a person."""

    rule: str
    key: str
    text: str

    @property
    def entry(self) -> str:
        """The line of the backlog that covers it."""
        return f"{self.rule} {self.key}"


def read_backlog(path: Path = BACKLOG) -> list[str]:
    """The entries of a backlog file, without comments and empty lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def outside_backlog(findings: Iterable[Finding], backlog: Iterable[str]) -> Iterator[str]:
    """Complaints: findings that the backlog does not cover, and entries that cover nothing."""
    listed = set(backlog)
    used = set()
    for finding in findings:
        if finding.entry in listed:
            used.add(finding.entry)
        else:
            yield finding.text
    for entry in sorted(listed - used):
        yield f"tools/house/backlog.txt: {entry!r} is clean now; remove the line"
