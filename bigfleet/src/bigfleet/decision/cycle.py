"""All arrays of one cycle under the names the kernels use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bigfleet.decision.kernels.layout import (
    I64,
    Classes,
    Facts,
    Holdings,
    Identities,
    Machines,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.normalise import Normalised
from bigfleet.decision.tables import Amounts


@dataclass
class Cycle:
    """Named tuples for Python, and references to them for the kernels, in this order."""

    ma: Machines
    cl: Classes
    ids: Identities
    ro: Rows
    fa: Facts
    ho: Holdings
    wo: Work
    sc: Scratch
    refs: tuple[Any, Any, Any, Any, Any, Any, Any, Any]
    rows: int
    sub_rows: I64
    amounts: Amounts
    normal: Normalised
    domain_names: dict[int, list[str]]
