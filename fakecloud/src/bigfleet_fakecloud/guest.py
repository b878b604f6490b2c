"""The inside of hosts: what the script that a provider runs there would have done.

A page whose cloud writes files and runs scripts on hosts hands both to `Guests`. A guest reads the
variables at the head of the script, joins or leaves a cluster and remembers which operation it
ended last, as the real script does with its files. Nothing is executed, and the secret is gone once
it was used.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field

# A quoted value may hold line ends.
_VARIABLE = re.compile(r"^(BIGFLEET_[A-Z_]+)=(.*?); export \1$", re.MULTILINE | re.DOTALL)
WRONG_CLUSTER, TRY_AGAIN, NOT_DONE, NO_SCRIPT = 4, 75, 1, 127


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a script ended."""

    exit_code: int
    stderr: str = ""


@dataclass(slots=True)
class Guest:
    """One host from inside."""

    cluster: str = ""
    done: str = ""
    files: dict[str, bytes] = field(default_factory=dict)


class Guests:
    """The insides of all hosts of a cloud."""

    def __init__(self) -> None:
        self._guests: dict[str, Guest] = {}

    def of(self, ref: str) -> Guest:
        """The inside of one host; a new host belongs to no cluster."""
        return self._guests.setdefault(ref, Guest())

    def forget(self, ref: str) -> None:
        """The host is gone, and what was in it."""
        self._guests.pop(ref, None)

    def write(self, ref: str, path: str, data: bytes, *, append: bool) -> None:
        """Write or extend a file."""
        files = self.of(ref).files
        files[path] = (files.get(path, b"") if append else b"") + data

    def run(self, ref: str, script: str) -> Outcome:
        """Do what the script would do, and say how it ends."""
        said = {name: shlex.split(text)[0] for name, text in _VARIABLE.findall(script)}
        step = _STEPS.get(said.get("BIGFLEET_KIND", ""))
        if step is None:
            return Outcome(NO_SCRIPT, "this guest only knows the script of a provider")
        return step(self.of(ref), said)


def _configure(guest: Guest, said: dict[str, str]) -> Outcome:
    cluster, path = said["BIGFLEET_CLUSTER"], said["BIGFLEET_BLOB_FROM"]
    if guest.files.pop(path, None) is None:
        return Outcome(TRY_AGAIN, f"there is no {path}")
    if guest.cluster not in ("", cluster):
        return Outcome(WRONG_CLUSTER, f"the host belongs to cluster {guest.cluster}")
    guest.cluster, guest.done = cluster, said["BIGFLEET_OPERATION"]
    return Outcome(0)


def _drain(guest: Guest, said: dict[str, str]) -> Outcome:
    guest.cluster, guest.done = "", said["BIGFLEET_OPERATION"]
    return Outcome(0)


def _probe(guest: Guest, said: dict[str, str]) -> Outcome:
    return Outcome(0 if guest.done == said["BIGFLEET_OPERATION"] else NOT_DONE)


_STEPS: dict[str, Callable[[Guest, dict[str, str]], Outcome]] = {
    "configure": _configure,
    "drain": _drain,
    "probe": _probe,
}
