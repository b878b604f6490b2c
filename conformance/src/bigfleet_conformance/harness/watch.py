"""Watching a machine: every state it shows while something happens to it.

A trace keeps one sample per look, so that a behaviour can ask which states were seen, in which
order, and what a record carried in each of them.
"""

import asyncio
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.oracles import TRANSITIONAL, word

if TYPE_CHECKING:
    from bigfleet_conformance.harness.calls import Calls


class Trace:
    """Samples one machine until the block ends; one last look is always taken."""

    def __init__(self, calls: "Calls", machine: str, every_s: float) -> None:
        self._calls = calls
        self._machine = machine
        self._every_s = every_s
        self._task: asyncio.Task[None] | None = None
        self.samples: list[pb.Machine] = []

    async def __aenter__(self) -> Self:
        self.samples.append(await self._calls.see(self._machine))
        self._task = asyncio.create_task(self._sample())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        task = self._task
        if task is None:
            return
        failed = task.done() and not task.cancelled()
        task.cancel()
        if failed and kind is None:
            await task
        await asyncio.gather(task, return_exceptions=True)
        if kind is None:
            self.samples.append(await self._calls.see(self._machine))

    async def _sample(self) -> None:
        while True:
            self.samples.append(await self._calls.see(self._machine))
            await asyncio.sleep(self._every_s)

    @property
    def path(self) -> list[int]:
        """The states in order, without repetition of neighbours."""
        return path_of(self.samples)

    def in_state(self, state: int) -> list[pb.Machine]:
        """The samples that showed this state."""
        return [sample for sample in self.samples if sample.state == state]

    def must_pass_only(self, allowed: Iterable[int], during: str) -> None:
        """In flight nothing else than these states was seen."""
        wanted = set(allowed)
        foreign = [state for state in self.path if state not in wanted]
        check(
            not foreign,
            f"during {during} {words(foreign)} was seen; allowed are {words(wanted)}",
        )

    def must_have_seen(self, state: int) -> None:
        """A slow provider shows its transitional states."""
        check(
            state in self.path,
            f"{word(state)} was never seen, only {words(self.path)}; the transition takes long "
            "enough to be seen",
        )

    def must_not_move(self, during: str) -> None:
        """No transitional state was seen."""
        seen = [state for state in self.path if state in TRANSITIONAL or state != self.path[0]]
        check(not seen, f"during {during} the machine moved: {words(self.path)}")


def path_of(samples: Iterable[pb.Machine]) -> list[int]:
    """The states of samples in order, without repetition of neighbours."""
    path: list[int] = []
    for sample in samples:
        if not path or path[-1] != sample.state:
            path.append(sample.state)
    return path


def words(states: Iterable[int]) -> str:
    """States for a person."""
    return ", ".join(word(state) for state in states) or "nothing"


def stray(path: Iterable[int], full: Iterable[int]) -> str:
    """The first state that is off the full path; states between two looks may be missed."""
    expected = iter(full)
    before = ""
    for state in path:
        if not any(step == state for step in expected):
            return f"{before} -> {word(state)}" if before else word(state)
        before = word(state)
    return ""


def never(samples: Iterable[pb.Machine], wrong: Callable[[pb.Machine], str]) -> None:
    """No sample is wrong by this rule."""
    for sample in samples:
        complaint = wrong(sample)
        check(not complaint, f"{sample.id}: {complaint}")
