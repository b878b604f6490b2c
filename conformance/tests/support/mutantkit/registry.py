"""Mutants by number: each is the reference provider or its server with one thing overridden."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from reference.provider import Provider
from reference.server import Server

T = TypeVar("T", bound="type[Provider] | type[Server]")


@dataclass(frozen=True, slots=True)
class Patch:
    """What is started instead of the reference provider."""

    provider: type[Provider] = Provider
    server: type[Server] = Server


PATCHES: dict[str, Patch] = {}


def broken(number: str) -> Callable[[T], T]:
    """Register a class under the number of a mutant."""

    def register(kind: T) -> T:
        if number in PATCHES:
            raise ValueError(f"{number} is there twice")
        if issubclass(kind, Provider):
            PATCHES[number] = Patch(provider=kind)
        else:
            PATCHES[number] = Patch(server=kind)
        return kind

    return register
