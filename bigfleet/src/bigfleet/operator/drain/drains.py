"""All drains: instructions, acknowledgements, cancels, and what a restart finds by the taint.

    instruction -> cordon -> first ack -> evict -> second ack: drained, or what is left

A newer instruction takes a node over; a cancel lets it go. What a restart finds goes on at once and
is called off when the shard has not confirmed it a minute after the session opened: it repeats the
instruction, or shows the machine as Draining. A finished drain keeps its node until the machine
leaves or the shard calls it off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Final, Protocol

from bigfleet.kube import KubeClient, KubeError, NotFoundError
from bigfleet.observe.process import Clock
from bigfleet.operator.drain import marks
from bigfleet.operator.drain.evictor import EvictionMetrics, NodeEmptier
from bigfleet.operator.drain.marks import Mark
from bigfleet.operator.drain.notices import ReclaimNotices, grace_seconds
from bigfleet.operator.nodes.book import NodeBook
from bigfleet.operator.nodes.objects import READ_NODES
from bigfleet.wire.backoff import Backoff
from bigfleet_api.v1alpha1 import shard_pb2 as pb

CONFIRM_SECONDS: Final = 60.0
_NS: Final = 1e9
Answer = Callable[[pb.OperatorMessage], None]
_log = logging.getLogger(__name__)


class DrainMetrics(EvictionMetrics, Protocol):
    """What is counted."""

    def drained(self, outcome: str) -> None:
        """drained, deadline, node_gone or cancelled."""


@dataclass(slots=True, eq=False)
class Drain:
    """One instruction under way, or over."""

    id: str
    deadline: float
    """By the event loop's clock."""
    nodes: list[str]
    confirmed: bool = True
    started: int = 0
    """Nodes that were cordoned; what the first ack said."""
    empty: set[str] = field(default_factory=set)
    done: bool = False
    task: asyncio.Task[None] | None = None


class NodeDrains:
    """All drains of this cluster."""

    def __init__(
        self,
        client: KubeClient,
        book: NodeBook,
        clock: Clock,
        counts: DrainMetrics,
        rng: Random,
        answer: Answer,
        notices: ReclaimNotices,
        *,
        evictions: int = 32,
    ) -> None:
        self._client, self._book, self._clock = client, book, clock
        self._counts, self._rng, self._answer = counts, rng, answer
        self._notices = notices
        self._room = asyncio.Semaphore(evictions)
        self._drains: dict[str, Drain] = {}
        self._emptiers: dict[str, NodeEmptier] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._confirming: asyncio.TimerHandle | None = None
        book.on_change.append(self._node_changed)

    def __len__(self) -> int:
        return len(self._drains)

    @property
    def active(self) -> int:
        """Drains that are not over."""
        return sum(not drain.done for drain in self._drains.values())

    # -- what comes in ---------------------------------------------------------------------------

    def instruct(self, instruction: pb.ReclaimInstruction) -> None:
        """An instruction of the shard: to drain, or to stop draining."""
        if instruction.cancel:
            self._cancel(instruction)
            return
        known = self._drains.get(instruction.instruction_id)
        if known is not None:
            known.confirmed = True
            self._tell_again(known)
            return
        seconds = grace_seconds(instruction)
        found: list[str] = []
        for entry in instruction.nodes:
            node = self._book.find(entry)
            if node is None:
                _log.info("nothing to drain", extra={"node": entry})
                self._counts.drained("node_gone")
            elif node.metadata.name not in found:
                found.append(node.metadata.name)
                self._take_over(node.metadata.name)
                self._notices.reclaiming(node, instruction)
        loop = asyncio.get_running_loop()
        drain = Drain(instruction.instruction_id, loop.time() + seconds, found)
        self._drains[drain.id] = drain
        self._start(drain, gone=len(instruction.nodes) - len(found))

    def draining(self, node_name: str) -> None:
        """The shard shows a node's machine as Draining: it means what it once said."""
        for drain in self._drains.values():
            if node_name in drain.nodes:
                drain.confirmed = True

    def resume(self) -> None:
        """Go on with what an earlier life of this process began."""
        loop = asyncio.get_running_loop()
        by_id: dict[str, Drain] = {}
        for node in list(self._book.nodes()):
            mark = marks.mark_of(node)
            name = node.metadata.name
            if mark is None or any(name in drain.nodes for drain in self._drains.values()):
                continue
            left = min(max(0.0, mark.deadline - self._clock.now() / _NS), 3600.0)
            key = mark.instruction_id or f"resumed-{name}"
            drain = by_id.setdefault(key, Drain(key, loop.time() + left, [], confirmed=False))
            drain.nodes.append(name)
        for drain in by_id.values():
            _log.info("drain resumed", extra={"instruction": drain.id, "nodes": drain.nodes})
            self._drains[drain.id] = drain
            self._start(drain)

    def session_opened(self) -> None:
        """From now on the shard has a minute to confirm what it has not."""
        for drain in self._drains.values():
            drain.confirmed = drain.confirmed and not drain.done
            self._tell_again(drain)
        self.session_closed()
        loop = asyncio.get_running_loop()
        self._confirming = loop.call_later(CONFIRM_SECONDS, self._call_off_unconfirmed)

    def session_closed(self) -> None:
        """No session can confirm anything now."""
        if self._confirming is not None:
            self._confirming.cancel()
            self._confirming = None

    async def stop(self) -> None:
        """Leave everything as it is; the next life goes on."""
        self.session_closed()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._drains.clear()
        self._emptiers.clear()

    # -- one drain -------------------------------------------------------------------------------

    def _start(self, drain: Drain, gone: int = 0) -> None:
        drain.task = self._spawn(self._run(drain, gone))

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a drain failed", exc_info=error)

    async def _run(self, drain: Drain, gone: int) -> None:
        loop = asyncio.get_running_loop()
        unix = self._clock.now() / _NS + drain.deadline - loop.time()
        mark = Mark(drain.id, int(unix))
        outcome = "drained"
        try:
            async with asyncio.timeout_at(drain.deadline):
                held = await asyncio.gather(*(self._cordon(name, mark) for name in drain.nodes))
                gone += held.count(False)
                drain.started = held.count(True) + drain.started
                self._first_ack(drain)
                waiting = [name for name in drain.nodes if name not in drain.empty]
                async with asyncio.TaskGroup() as group:
                    for name in waiting:
                        group.create_task(self._empty(drain, name))
        except TimeoutError:
            outcome = "deadline"
        drain.done = True
        left = [name for name in drain.nodes if name not in drain.empty]
        for name in drain.nodes:
            self._counts.drained("drained" if name in drain.empty else outcome)
        if left:
            pods = {name: self._words(name) for name in left}
            _log.warning("nodes not emptied in time", extra={"instruction": drain.id, "pods": pods})
        self._second_ack(drain, gone)

    async def _cordon(self, name: str, mark: Mark) -> bool:
        """Whether the node is held; False when it is gone."""
        backoff = Backoff(first=0.2, longest=5.0, chance=self._rng)
        while True:
            try:
                await self._client.change(READ_NODES, name, lambda node: marks.cordon(node, mark))
            except NotFoundError:
                self._counts.drained("node_gone")
                for drain in self._drains.values():
                    if name in drain.nodes:
                        drain.nodes.remove(name)
                return False
            except KubeError as error:
                _log.warning("node not cordoned", extra={"node": name, "error": str(error)})
                await asyncio.sleep(backoff.next())
                continue
            return True

    async def _empty(self, drain: Drain, name: str) -> None:
        emptier = self._emptiers[name] = NodeEmptier(
            name, self._book.to_evict, self._client, self._room, self._counts, self._rng
        )
        try:
            await emptier.run()
            drain.empty.add(name)
        finally:
            if self._emptiers.get(name) is emptier:
                del self._emptiers[name]

    # -- ends ------------------------------------------------------------------------------------

    def _cancel(self, instruction: pb.ReclaimInstruction) -> None:
        drain = self._drains.get(instruction.instruction_id)
        names = set(drain.nodes) if drain is not None else set()
        for entry in instruction.nodes:
            # Also where the drain is not known here: no node stays cordoned without a reason.
            node = self._book.find(entry)
            if node is not None and (marks.is_marked(node) or self._holds(node.metadata.name)):
                names.add(node.metadata.name)
        for name in names:
            self._let_go(name)

    def _call_off_unconfirmed(self) -> None:
        self._confirming = None
        for drain in [drain for drain in self._drains.values() if not drain.confirmed]:
            _log.warning("drain called off: the shard did not confirm it",
                         extra={"instruction": drain.id, "nodes": list(drain.nodes)})  # fmt: skip
            for name in list(drain.nodes):
                self._let_go(name)

    def _let_go(self, name: str) -> None:
        self._take_over(name)
        self._counts.drained("cancelled")
        if (node := self._book.get(name)) is not None:
            self._notices.called_off(node)
        self._spawn(self._uncordon(name))

    async def _uncordon(self, name: str) -> None:
        backoff = Backoff(first=0.2, longest=15.0, chance=self._rng)
        while not self._holds(name):
            try:
                await self._client.change(READ_NODES, name, marks.uncordon)
            except NotFoundError:
                return
            except KubeError as error:
                _log.warning("node not uncordoned", extra={"node": name, "error": str(error)})
                await asyncio.sleep(backoff.next())
                continue
            _log.info("node uncordoned", extra={"node": name})
            return

    def _holds(self, name: str) -> bool:
        return any(name in drain.nodes for drain in self._drains.values())

    def _take_over(self, name: str) -> None:
        """A node leaves the drain it is in."""
        for drain in list(self._drains.values()):
            if name not in drain.nodes:
                continue
            drain.nodes.remove(name)
            drain.empty.discard(name)
            if not drain.nodes:
                del self._drains[drain.id]
                if drain.task is not None:
                    drain.task.cancel()
            elif (emptier := self._emptiers.get(name)) is not None:
                # Its Pods need no eviction any more; the others of this drain go on.
                emptier.release()

    def _node_changed(self, name: str) -> None:
        emptier = self._emptiers.get(name)
        if emptier is not None:
            emptier.wake()
        if self._book.get(name) is None and self._holds(name):
            self._node_left(name)

    def _node_left(self, name: str) -> None:
        if (emptier := self._emptiers.get(name)) is not None:
            emptier.release()
        for drain in list(self._drains.values()):
            if name in drain.nodes:
                drain.empty.add(name)
                if drain.done:
                    drain.nodes.remove(name)
                    if not drain.nodes:
                        del self._drains[drain.id]

    # -- acknowledgements ------------------------------------------------------------------------

    def _first_ack(self, drain: Drain) -> None:
        ack = pb.ReclaimAck(instruction_id=drain.id, nodes_started=drain.started)
        self._answer(pb.OperatorMessage(reclaim_ack=ack))

    def _second_ack(self, drain: Drain, gone: int = 0) -> None:
        left = [name for name in drain.nodes if name not in drain.empty]
        ack = pb.ReclaimAck(
            instruction_id=drain.id,
            nodes_started=drain.started,
            # A node that is gone is empty.
            nodes_drained=len(drain.nodes) - len(left) + gone,
            nodes_left=left,
        )
        self._answer(pb.OperatorMessage(reclaim_ack=ack))
        if not drain.nodes:
            self._drains.pop(drain.id, None)

    def _tell_again(self, drain: Drain) -> None:
        if drain.started:
            self._first_ack(drain)
        if drain.done:
            self._second_ack(drain)

    def _words(self, name: str) -> list[str]:
        return sorted(f"{pod.namespace}/{pod.name}" for pod in self._book.to_evict(name))[:20]
