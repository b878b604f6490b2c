"""The registry: every behaviour as data, with its frozen id and its one test.

A behaviour is one sentence about a provider that can be seen from outside. The modules of the
package `behaviours` register theirs here when they are imported; runner, reports and command line
read the registry and never the modules. What a test may do is the harness's business.
"""

import hashlib
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigfleet_conformance.harness.probe import Probe

ID = re.compile(r"B\d{3,4}")
PARTS = ("Why", "Does", "Passes")
RETIRED = frozenset({"B2022"})
"""Ids of rows that are no longer run. Stored reports may have them; no new row takes one of them.

B2022 demanded INVALID_ARGUMENT for tokens with negative parts; B2039 demands a comparison.
"""


class Area(StrEnum):
    """The chapters of the registry."""

    LIFECYCLE = "lifecycle"
    TRANSITIONS = "transitions"
    FENCING = "fencing"
    CONCURRENCY = "concurrency"
    METADATA = "metadata"
    FAILURE = "failure"
    SHAPE = "shape"
    LISTING = "listing"
    DURABILITY = "durability"
    SCALE = "scale"
    PROPERTIES = "properties"
    ADDITIONAL = "additional"


class Profile(StrEnum):
    """What a certificate can be for."""

    CORE = "core"
    CLOUD = "cloud"
    BARE_METAL = "bare-metal"
    SPOT = "spot"
    FAULT = "fault"
    DURABLE = "durable"
    SCALE = "scale"
    SECURE = "secure"
    OBSERVABLE = "observable"


class Capability(StrEnum):
    """What a provider may or may not offer; a behaviour can depend on it."""

    DELETE = "Delete"
    SINCE_REVISION = "SinceRevision"
    CONTINUATION = "Continuation"
    SLOW = "Slow"
    FAULT = "Fault"
    HEAL = "Heal"
    DURABLE = "Durable"
    SCALE = "Scale"
    TLS = "Tls"


class LaneName(StrEnum):
    """The instance of the provider on which a behaviour is looked at."""

    CORE = "core"
    SLOW = "slow"
    FAULT = "fault"
    DURABLE = "durable"
    SECURE = "secure"
    SCALE = "scale"
    LARGE = "large"


class Alone(StrEnum):
    """What a behaviour tolerates beside it."""

    NO = "no"  # looks at its own machines only
    LANE = "lane"  # counts or watches the whole inventory
    RUN = "run"  # has a limit on the time of a read


Test = Callable[["Probe"], Awaitable[None]]


class RegistryError(Exception):
    """The registry breaks one of its own rules."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One row of the registry."""

    id: str
    area: Area
    title: str
    why: str
    does: str
    passes: str
    profiles: tuple[Profile, ...]
    needs: tuple[Capability, ...]
    lane: LaneName
    also_slow: bool
    alone: Alone
    slots: int
    section: str
    test: Test
    selectors: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        """The digits of the id, for sorting."""
        return int(self.id[1:])

    @property
    def additional(self) -> bool:
        """Whether it goes beyond the base of 93."""
        return self.area is Area.ADDITIONAL


_BEHAVIOURS: dict[str, Behaviour] = {}


@dataclass(frozen=True, slots=True)
class Chapter:
    """Registers the behaviours of one area: a decorator with the area's defaults."""

    area: Area
    section: str
    profiles: tuple[Profile, ...] = (Profile.CORE,)
    lane: LaneName = LaneName.CORE
    needs: tuple[Capability, ...] = ()

    def row(
        self,
        id: str,
        *,
        slots: int = 1,
        also: tuple[Profile, ...] = (),
        needs: tuple[Capability, ...] = (),
        also_slow: bool = False,
        alone: Alone = Alone.NO,
        section: str = "",
        selectors: tuple[str, ...] = (),
    ) -> Callable[[Test], Test]:
        """Register the decorated test under a frozen id; its docstring is the row's text.

        `selectors` are the levers that it pulls beyond those of the canonical catalogue; where the
        fault subject does not have them, the row does not apply.
        """

        def register(test: Test) -> Test:
            if id in _BEHAVIOURS:
                raise RegistryError(f"{id} is registered twice; an id is never used again")
            if id in RETIRED:
                raise RegistryError(f"{id} is retired; an id is never used again")
            title, parts = _texts(id, test)
            _BEHAVIOURS[id] = Behaviour(
                id=id,
                area=self.area,
                title=title,
                why=parts["Why"],
                does=parts["Does"],
                passes=parts["Passes"],
                profiles=(*self.profiles, *also),
                needs=(*self.needs, *needs),
                lane=self.lane,
                also_slow=also_slow,
                alone=alone,
                slots=slots,
                section=section or self.section,
                test=test,
                selectors=selectors,
            )
            return test

        return register


def _texts(id: str, test: Test) -> tuple[str, Mapping[str, str]]:
    """Title, reason, steps and criterion out of a test's docstring."""
    title, _, body = (inspect.getdoc(test) or "").partition("\n\n")
    found: dict[str, str] = {}
    for paragraph in re.split(rf"\n(?=(?:{'|'.join(PARTS)}): )", body):
        name, _, text = paragraph.partition(": ")
        found[name] = " ".join(text.split())
    missing = [part for part in PARTS if not found.get(part)]
    if missing or not title:
        raise RegistryError(f"{id}: the docstring lacks {', '.join(missing) or 'a title'}")
    return " ".join(title.split()).rstrip("."), found


def all_behaviours() -> Mapping[str, Behaviour]:
    """Every behaviour by id, in the order of the ids."""
    import bigfleet_conformance.behaviours  # noqa: F401 - registers all of them

    return dict(sorted(_BEHAVIOURS.items(), key=lambda item: item[1].number))


def select(
    behaviours: Iterable[Behaviour], only: Sequence[str], skip: Sequence[str]
) -> list[Behaviour]:
    """Those that match a pattern of `only` (none means all) and none of `skip`."""
    from fnmatch import fnmatchcase

    def matches(behaviour: Behaviour, patterns: Sequence[str]) -> bool:
        return any(fnmatchcase(behaviour.id, pattern) for pattern in patterns)

    return [b for b in behaviours if (not only or matches(b, only)) and not matches(b, skip)]


def digest(behaviours: Iterable[Behaviour]) -> str:
    """A fingerprint of the registry: two reports with the same one were judged by the same rows."""
    lines = [
        f"{b.id}|{b.area}|{b.title}|{b.passes}|{','.join(b.profiles)}|{','.join(b.needs)}"
        for b in behaviours
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
