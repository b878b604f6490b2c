"""Whatever happens, a shared claim counts once: for the first Pod that can carry it."""

from __future__ import annotations

from random import Random

import pytest

from bigfleet.kube import Change, ChangeKind
from bigfleet.podcontroller.errors import UnsupportedClaimError
from bigfleet.podcontroller.pods import DemandPod, ResourceClaim, ResourceClaimTemplate
from bigfleet.podcontroller.resource_claims import ClaimBook, PodKey
from kubeobjects import Document, claim, claim_template, exactly, pod, read

RESOURCE = "example.com/device"
CLAIMS, TEMPLATES = ("c-1", "c-2"), ("t-1", "t-2")
PODS = ("p-1", "p-2", "p-3", "p-4")
KNOWN, UNKNOWN = "known.example.com", "unknown.example.com"
Spec = tuple[str, int] | None
"""Class and count; None where the object is away."""


class World:
    """A book that is told of changes, and the amounts that its Pods were last given."""

    def __init__(self) -> None:
        self.book = ClaimBook({KNOWN: RESOURCE})
        self.specs: dict[str, tuple[str, int]] = {}
        self.pods: dict[str, tuple[int, list[str], str]] = {}
        self.foreign: set[str] = set()
        self.dirty: dict[PodKey, None] = {}
        self.given: dict[str, int | None] = {}
        self.book.on_change = lambda key: self.dirty.update({key: None})
        self.book.asks = lambda one: self.asks(one.metadata.name)

    def asks(self, name: str) -> bool:
        """Whether a Pod is demand."""
        return self.pods[name][2] != "Succeeded" and name not in self.foreign

    def document(self, name: str) -> Document:
        age, sources, phase = self.pods[name]
        entries = [
            {"name": f"n-{number}"}
            | (
                {"resourceClaimName": source}
                if source in CLAIMS
                else {"resourceClaimTemplateName": source}
            )
            for number, source in enumerate(sources)
        ]
        made = pod(name, phase=phase, resourceClaims=entries)
        made["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{age}Z"
        return made

    def put_spec(self, name: str, spec: Spec) -> None:
        self.specs.pop(name, None)
        if spec is not None:
            self.specs[name] = spec
        request = exactly(spec[0], count=spec[1]) if spec else exactly()
        if name in CLAIMS:
            found = read(ResourceClaim, claim(name, request))
            old, new = (found, None) if spec is None else (None, found)
            self.book.claim_seen(Change(ChangeKind.CHANGED, name, old, new))
        else:
            template = read(ResourceClaimTemplate, claim_template(name, request))
            self.book.template_seen(
                Change(ChangeKind.CHANGED, name, template, None if spec is None else template)
            )

    def put_pod(self, name: str, made: tuple[int, list[str], str] | None) -> None:
        key = ("default", name)
        self.pods.pop(name, None)
        if made is not None:
            self.pods[name] = made
        self.book.pod_seen(key, None if made is None else self.read(name))
        self.dirty[key] = None

    def set_foreign(self, name: str, is_foreign: bool) -> None:
        (self.foreign.add if is_foreign else self.foreign.discard)(name)
        self.dirty["default", name] = None

    def read(self, name: str) -> DemandPod:
        return read(DemandPod, self.document(name))

    def settle(self) -> None:
        """As the controller works off its queue."""
        looks = 0
        while self.dirty:
            (_, name) = next(iter(self.dirty))
            del self.dirty["default", name]
            self.given.pop(name, None)
            looks += 1
            assert looks < 200
            if name not in self.pods:
                continue
            found = self.read(name)
            self.book.follow(found)
            if not self.asks(name):
                continue
            try:
                self.given[name] = self.book.devices_of(found).get(RESOURCE, 0)
            except UnsupportedClaimError:
                self.given[name] = None

    def expected(self) -> dict[str, int | None]:
        """The amounts by definition, from all that is there."""
        countable = {
            name
            for name, (_, sources, _) in self.pods.items()
            if self.asks(name)
            and all(self.specs.get(source, (UNKNOWN, 0))[0] == KNOWN for source in sources)
        }
        order = sorted(countable, key=lambda name: (self.pods[name][0], name))
        amounts: dict[str, int | None] = {name: None for name in self.pods if self.asks(name)}
        for name in countable:
            sources = [s for s in self.pods[name][1] if s in TEMPLATES]
            for source in CLAIMS:
                users = [one for one in order if source in self.pods[one][1]]
                if users and users[0] == name:
                    sources.append(source)
            amounts[name] = 1000 * sum(self.specs[source][1] for source in sources)
        return amounts


def a_spec(rng: Random) -> tuple[str, int]:
    return rng.choice([KNOWN] * 5 + [UNKNOWN]), rng.randint(1, 4)


def a_pod(rng: Random) -> tuple[int, list[str], str]:
    sources = rng.choices([*CLAIMS, *TEMPLATES], k=rng.randint(0, 3))
    return rng.randint(0, 3), sources, rng.choice(["Pending", "Pending", "Running", "Succeeded"])


def happen(world: World, rng: Random) -> None:
    """One change of anything."""
    match rng.randrange(4):
        case 0:
            name = rng.choice([*CLAIMS, *TEMPLATES])
            world.put_spec(name, a_spec(rng) if rng.random() < 0.8 else None)
        case 1:
            world.set_foreign(rng.choice(PODS), rng.random() < 0.5)
        case _:
            world.put_pod(rng.choice(PODS), a_pod(rng) if rng.random() < 0.8 else None)


@pytest.mark.parametrize("batch", range(8))
def test_a_shared_claim_counts_once_for_the_first_pod_that_can_carry_it(batch: int) -> None:
    for seed in range(batch * 50, batch * 50 + 50):
        rng, world = Random(seed), World()
        for name in (*CLAIMS, *TEMPLATES):
            world.put_spec(name, a_spec(rng))
        for name in PODS:
            world.put_pod(name, a_pod(rng))
        for _ in range(rng.randint(1, 40)):
            happen(world, rng)
            if rng.random() < 0.5:
                world.settle()
                assert world.given == world.expected(), f"seed {seed}"
        world.settle()
        assert world.given == world.expected(), f"seed {seed}"
