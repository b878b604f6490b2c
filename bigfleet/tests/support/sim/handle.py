"""What a run needs to know of one life of a shard."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from bigfleet.model import Resources
from bigfleet.shard.machines.book import Book
from bigfleet.shard.state.ownership import OwnershipFile
from sim.process import Process

RowKey = tuple[str, str, str, str]
"""Cluster, fingerprint, group, size class."""


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """What the last cycle says of a row."""

    satisfied: bool
    reason: str


class ShardHandle(Protocol):
    """One life of a shard, from outside."""

    @property
    def process(self) -> Process:
        """Its process."""
        ...

    @property
    def book(self) -> Book:
        """Its machines."""
        ...

    @property
    def ownership(self) -> OwnershipFile | None:
        """Which machines are its own; None while it starts."""
        ...

    def partial(self) -> bool:
        """Whether it decides without having heard of all its providers, after waiting for them."""
        ...

    def reported(self, cluster: str) -> bool:
        """Whether it has accepted a roll-up of the cluster, in this life."""
        ...

    def configured(self, cluster: str) -> int:
        """How many machines it counts as Configured for a cluster."""
        ...

    def priorities(self, cluster: str) -> Collection[int]:
        """Of the rows a cluster asks for."""
        ...

    def connected(self, cluster: str) -> bool:
        """Whether the cluster has a session."""
        ...

    def verdicts(self) -> Mapping[RowKey, RowVerdict]:
        """What became of every row of demand."""
        ...

    def demanded(self, cluster: str) -> Mapping[RowKey, Resources]:
        """What it believes the cluster asks for."""
        ...

    def waiting(self) -> int:
        """Actions that are queued or running."""
        ...

    def fenced(self) -> bool:
        """Whether a provider takes it for outlived, so that it acts no more in this life."""
        ...
