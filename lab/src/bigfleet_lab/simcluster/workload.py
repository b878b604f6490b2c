"""The demand of one cluster: objects with replicas.

An object stands for a Deployment, a Job or a gang: pods that ask for the same. Its replicas exist
whether they run or wait, and what exists is demand; so a roll-up follows from this alone, and
nothing that happens to nodes changes it. What is running where is in `scheduler`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bigfleet.model import Profile, Requirement, RequirementOperator, Resources
from bigfleet_lab.simcluster.errors import WorkloadError

OnChange = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class WorkObject:
    """Pods of one kind. `request` is milli-units per pod; `group` the gang they are, if any."""

    name: str
    profile: Profile
    request: Resources = field(hash=False)
    group: str = ""
    do_not_disrupt: bool = False

    def __post_init__(self) -> None:
        if not self.request:
            raise WorkloadError(f"object {self.name!r} asks for nothing: give it a request")
        if bool(self.group) != bool(self.profile.same):
            raise WorkloadError(
                f"object {self.name!r}: a group and a requirement Same come together or not at all"
            )

    @property
    def together(self) -> Requirement | None:
        """The label all its pods must share a value of; None for pods that may be anywhere."""
        same = self.profile.same
        return same[0] if same else None

    @property
    def compares(self) -> bool:
        """Whether it uses Gt or Lt, which an older shard does not know."""
        return any(
            requirement.operator in (RequirementOperator.GT, RequirementOperator.LT)
            for requirement in self.profile.requirements
        )


class Workload:
    """All objects of a cluster, and how many replicas each has."""

    def __init__(self) -> None:
        self._objects: dict[str, WorkObject] = {}
        self._replicas: dict[str, int] = {}
        self._pods = 0
        self.on_change: list[OnChange] = []

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[WorkObject]:
        return iter(self._objects.values())

    def __contains__(self, name: object) -> bool:
        return name in self._objects

    def __getitem__(self, name: str) -> WorkObject:
        return self._objects[name]

    @property
    def names(self) -> tuple[str, ...]:
        """In the order they were added."""
        return tuple(self._objects)

    def replicas(self, name: str) -> int:
        """How many pods of an object exist; 0 for an object that is not there."""
        return self._replicas.get(name, 0)

    def pods(self) -> int:
        """All of them."""
        return self._pods

    def add(self, what: WorkObject, replicas: int) -> None:
        """A new object. Its name must be free."""
        if what.name in self._objects:
            raise WorkloadError(f"object {what.name!r} is there already: scale it, or remove it")
        self._objects[what.name] = what
        self._replicas[what.name] = 0
        self.scale(what.name, replicas)

    def scale(self, name: str, replicas: int) -> None:
        """Another number of replicas."""
        if name not in self._objects:
            raise WorkloadError(f"object {name!r} is not there: add it first")
        if replicas < 0:
            raise WorkloadError(f"object {name!r}: {replicas} replicas: use zero or more")
        if replicas != self._replicas[name]:
            self._pods += replicas - self._replicas[name]
            self._replicas[name] = replicas
            self._changed(name)

    def remove(self, name: str) -> None:
        """The object goes, with all its pods."""
        self.scale(name, 0)
        del self._objects[name], self._replicas[name]
        self._changed(name)

    def _changed(self, name: str) -> None:
        for tell in self.on_change:
            tell(name)
