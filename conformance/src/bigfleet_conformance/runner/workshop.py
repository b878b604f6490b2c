"""The workshop: further instances for behaviours that need restarts, other options or TLS.

Everything it starts it also ends, on every way out. Stories that several behaviours look at (a
crash and what is left after it) are told once and kept.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import grpc

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.errors import BootError, CannotRunError
from bigfleet_conformance.harness.certificates import Credentials
from bigfleet_conformance.harness.link import ChannelLink
from bigfleet_conformance.harness.probe import Probe, SlotPool
from bigfleet_conformance.runner.source import BootPlan, Instance, Source

T = TypeVar("T")
LIST_DEADLINE_S = 120.0
ENDING_LIMIT_S = 2.0
LOOK_EVERY_S = 0.05


@dataclass(slots=True)
class Subject:
    """An instance, a way to it and its free slots."""

    plan: BootPlan
    instance: Instance
    link: ChannelLink
    pool: SlotPool

    def probe(self, parent: Probe) -> Probe:
        """The same behaviour, looking at this instance."""
        setting = replace(
            parent.setting, link=self.link, pool=self.pool, slow=self.plan.slow_ms > 0
        )
        child = Probe(setting, parent.behaviour, parent.seed, parent.evidence)
        child.random = parent.random
        return child

    async def kill(self) -> None:
        """SIGKILL."""
        await self.link.close()
        await self.instance.kill()

    async def stop(self) -> int:
        """SIGTERM; the exit code."""
        await self.link.close()
        return await self.instance.stop()


@dataclass(slots=True)
class Workshop:
    """Boots of one run."""

    source: Source | None
    fault_source: Source | None
    folder: Path
    over_http: bool = False
    fault_refusal: str = ""
    _subjects: list[Subject] = field(default_factory=list)
    _stories: dict[str, "asyncio.Task[Any]"] = field(default_factory=dict)
    _folders: int = 0

    def new_folder(self, name: str) -> Path:
        """An empty folder for one state."""
        self._folders += 1
        folder = self.folder / f"{name}-{self._folders}"
        folder.mkdir(parents=True)
        return folder

    def copy_of(self, folder: Path) -> Path:
        """A copy of a state's folder."""
        target = self.new_folder(f"{folder.name}-copy")
        shutil.copytree(folder, target, dirs_exist_ok=True)
        return target

    def need_source(self, *, fault: bool = False) -> Source:
        """Something that can be booted."""
        source = self.fault_source if fault else self.source
        if source is None:
            why = self.fault_refusal if fault else ""
            raise CannotRunError(
                why or "this needs an executable to boot; use --provider or --exec"
            )
        return source

    async def boot(
        self,
        plan: BootPlan,
        *,
        fault: bool = False,
        credentials_of: Callable[[str], Credentials] | None = None,
    ) -> Subject:
        """An instance that is up and lists its machines."""
        plan = self._with_state(plan)
        instance = await self.need_source(fault=fault).boot(plan)
        link = ChannelLink(instance.address, credentials_of)
        subject = Subject(plan, instance, link, SlotPool([]))
        self._subjects.append(subject)
        answer = await self._first_list(instance, link)
        subject.pool = SlotPool(list(answer.machines))
        return subject

    async def boot_instance(self, plan: BootPlan, *, fault: bool = False) -> Instance:
        """An instance without a look at its inventory."""
        plan = self._with_state(plan)
        instance = await self.need_source(fault=fault).boot(plan)
        link = ChannelLink(instance.address)
        self._subjects.append(Subject(plan, instance, link, SlotPool([])))
        return instance

    async def _first_list(self, instance: Instance, link: ChannelLink) -> pb.MachineList:
        """The inventory; a process that opens its port and then ends refused to start."""
        call = asyncio.ensure_future(
            link.stub().List(pb.ListFilter(), timeout=LIST_DEADLINE_S, wait_for_ready=True)
        )
        try:
            while not call.done() and instance.alive():
                await asyncio.wait({call}, timeout=LOOK_EVERY_S)
            if call.done():
                try:
                    return call.result()
                except grpc.aio.AioRpcError as error:
                    refusal = f"the first List answers {error.code().name}: {error.details()}"
                    await self._wait_for_end(instance)
                    if instance.alive():
                        raise CannotRunError(refusal) from error
            raise BootError(instance.last_words(), await instance.stop())
        finally:
            call.cancel()

    async def _wait_for_end(self, instance: Instance) -> None:
        for _ in range(round(ENDING_LIMIT_S / LOOK_EVERY_S)):
            if not instance.alive():
                return
            await asyncio.sleep(LOOK_EVERY_S)

    def _with_state(self, plan: BootPlan) -> BootPlan:
        """Over HTTP every instance has a state: a real substrate demands it."""
        if not self.over_http or plan.state is not None:
            return plan
        return replace(plan, state=self.new_folder(plan.label) / "state")

    async def once(self, name: str, tell: Callable[[], Awaitable[T]]) -> T:
        """A story that several behaviours look at; how it ends, it ends for all."""
        if name not in self._stories:
            self._stories[name] = asyncio.ensure_future(tell())
        told: asyncio.Task[T] = self._stories[name]
        return await asyncio.shield(told)

    async def close(self) -> None:
        """End every instance that was started here."""
        for story in self._stories.values():
            story.cancel()
        await asyncio.gather(*self._stories.values(), return_exceptions=True)
        for subject in self._subjects:
            await subject.link.close()
            if subject.instance.alive():
                await subject.instance.kill()
        self._subjects.clear()
