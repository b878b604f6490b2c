"""All arrays of one cycle under the names the kernels use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bigfleet.decision.kernels.layout import (
    I64,
    ClassArrays,
    Facts,
    Holdings,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.normalise import NormalRows
from bigfleet.decision.tables import ScaledAmounts


@dataclass
class CycleArrays:
    """Named tuples for Python, and references to them for the kernels, in this order."""

    ma: MachineArrays
    cl: ClassArrays
    ids: Identities
    ro: Rows
    fa: Facts
    ho: Holdings
    wo: Work
    sc: Scratch
    refs: tuple[Any, Any, Any, Any, Any, Any, Any, Any]
    rows: int
    sub_rows: I64
    amounts: ScaledAmounts
    normal: NormalRows
    domain_names: dict[int, list[str]]
