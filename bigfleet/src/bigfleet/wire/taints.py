"""Taints and tolerations on the wire as values, and back.

A provider of an earlier release writes its taints into a label instead of the field. The label is
read where the field is empty, for one release; a part of it that is not a taint is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from bigfleet.model import Taint, TaintError, Toleration, canonical_taints
from bigfleet_api.v1alpha1 import capacity_pb2, provider_pb2
from bigfleet_base.identifiers import IdentifierError, check_label_key, check_label_value

LABEL_TAINTS: Final = "bigfleet.lucy.sh/taints"
"""Taints as earlier releases of providers give them: `key=value:Effect`, separated by commas."""
_TEXTS: Final = 4096
"""Labels that are read once: fleets write few different ones."""


def taints_from_proto(protos: Iterable[provider_pb2.Taint]) -> tuple[Taint, ...]:
    """Taints in canonical order; TaintError for one that no node can have."""
    found = []
    for proto in protos:
        try:
            check_label_key(proto.key, "taint: key")
            check_label_value(proto.value, f"taint {proto.key}: value")
        except IdentifierError as error:
            raise TaintError(str(error)) from None
        found.append(Taint.of(proto.key, proto.value, proto.effect))
    return canonical_taints(found)


@lru_cache(_TEXTS)
def taints_of_label(text: str) -> tuple[Taint, ...]:
    """The taints a label names. What is not a taint is left out: a node comes up without it."""
    found = []
    for part in text.split(","):
        rest, _, effect = part.strip().rpartition(":")
        key, _, value = rest.partition("=")
        try:
            found.append(Taint.of(key, value, effect))
        except TaintError:
            continue
    return canonical_taints(found)


def taints_to_proto(taints: Iterable[Taint]) -> list[provider_pb2.Taint]:
    """Taints as they are sent, in the order given."""
    return [provider_pb2.Taint(key=t.key, value=t.value, effect=t.effect) for t in taints]


def tolerations_from_proto(protos: Iterable[capacity_pb2.Toleration]) -> list[Toleration]:
    """Tolerations in the order given; TaintError for one that Kubernetes would refuse."""
    return [Toleration.of(p.key, p.operator, p.value, p.effect) for p in protos]


def tolerations_to_proto(tolerations: Iterable[Toleration]) -> list[capacity_pb2.Toleration]:
    """Tolerations as they are sent, in the order given."""
    return [
        capacity_pb2.Toleration(key=t.key, operator=t.operator, value=t.value, effect=t.effect)
        for t in tolerations
    ]
