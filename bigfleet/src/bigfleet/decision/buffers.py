"""Buffers for a cycle: what the phases write, and scratch that is used again and again.

Half a million machines need some twenty megabytes; allocating them in each cycle
would cost more than deciding. What a buffer holds means nothing after its cycle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from bigfleet.decision.kernels.layout import I64, ClassArrays, Facts, Rows, Scratch, Work

_SLOTS_BYTES = 64 << 20
_COUNTERS = 8


@dataclass
class BufferPool:
    """Arrays by name, kept while they are large enough."""

    _arrays: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    _views: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    """What was given out last under each name."""

    def array(self, name: str, shape: tuple[int, ...], dtype: Any, fill: int | None) -> Any:
        """An array of this shape; filled, or with whatever is in it."""
        view = self._views.get(name)
        if view is None or view.shape != shape or view.dtype != dtype:
            view = self._views[name] = self._view(name, shape, dtype)
        if fill is not None:
            view.fill(fill)
        return view

    def _view(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        size = prod(shape)
        held = self._arrays.get(name)
        if held is None or held.dtype != dtype or held.size < size:
            held = self._arrays[name] = np.empty(size + size // 8, dtype)
        return held[:size].reshape(shape)


def make_work(
    buffers: BufferPool, machines: int, rows: Rows, classes: ClassArrays, facts: Facts, ids: int,
    cancel: I64,
) -> Work:  # fmt: skip
    """Everything the phases write, in its first state."""
    size, width = rows.aggregate.shape
    counted = 0
    if len(rows.spread_key):
        ends = np.cumsum(facts.domain_count[rows.spread_key], dtype=np.int64)
        rows.spread_count[0], rows.spread_count[1:] = 0, ends[:-1]
        counted = int(ends[-1])

    def per_machine(name: str, dtype: Any, fill: int) -> Any:
        return buffers.array(name, (machines,), dtype, fill)

    return Work(
        claim=per_machine("claim", np.int32, -1),
        held=per_machine("held", np.uint8, 0),
        taken=per_machine("taken", np.int32, -1),
        aside=per_machine("aside", np.uint8, 0),
        kept=per_machine("kept", np.uint8, 0),
        expected=per_machine("expected", np.int32, -1),
        identity=per_machine("identity", np.int32, -1),
        turn=per_machine("turn", np.int32, -1),
        left=rows.aggregate.copy(),
        named=np.zeros(max(1, ids), np.int32),
        next_member=rows.members[:-1].copy(),
        done=np.zeros(size, np.uint8),
        chosen=np.zeros(size, np.uint8),
        domain=np.full(size, -1, np.int32),
        satisfiable=np.zeros(size, np.uint8),
        best=np.full((size, 5), -1, np.int32),
        best_mille=np.zeros((size, 5), np.int32),
        best_ok=np.zeros((size, 5), np.uint8),
        served=np.zeros(size, np.int32),
        spread=np.zeros(counted + 1, np.int32),
        used=np.zeros(max(1, len(facts.quota)), np.int64),
        spend=np.zeros(1, np.int64),
        position=np.zeros(2 * len(classes.price), np.int64),
        stale=np.ones(2 * len(classes.price), np.uint8),
        front=np.zeros((2 * len(classes.price), 3), np.int32),
        changes=np.zeros(len(classes.price), np.int64),
        log=buffers.array("log", (3 * machines + 8,), np.int32, None),
        log_size=np.zeros(1, np.int64),
        preempt=per_machine("preempt", np.int32, -1),
        grace=per_machine("grace", np.int32, 0),
        moved=per_machine("moved", np.uint8, 0),
        lost=per_machine("lost", np.int32, -1),
        victims=np.zeros(size, np.int32),
        freed=np.zeros((size, width), np.int64),
        cancel=cancel,
        counters=np.zeros(_COUNTERS, np.int64),
    )


def make_scratch(
    buffers: BufferPool, machines: int, rows: Rows, classes: ClassArrays, facts: Facts, name: str =
    "",
) -> Scratch:  # fmt: skip
    """Scratch for one row's turn; ``name`` keeps the scratch of workers apart."""
    width = rows.aggregate.shape[1]
    size = machines + 2 * len(classes.price) + 8
    domains = int(facts.domain_count.max(initial=0)) + 1
    gangs = int(rows.gang_type.max(initial=-1)) + 1
    slots = min(max(1, gangs), max(1, _SLOTS_BYTES // (8 * domains * (width + 1))))
    slots = slots if gangs else 0
    keys = len(facts.domain_column) if gangs or len(rows.spread_key) else 0

    def lists(field_name: str, dtype: Any, fill: int | None = None) -> Any:
        return buffers.array(name + field_name, (size,), dtype, fill)

    return Scratch(
        give_row=np.full(len(classes.price), -1, np.int32),
        give_flags=np.zeros(len(classes.price), np.uint8),
        give=np.zeros((len(classes.price), width), np.int64),
        cand=lists("cand", np.int32),
        sorted=lists("sorted", np.int64),
        spare=lists("spare", np.int64),
        k1=lists("k1", np.int64),
        k2=lists("k2", np.int64),
        k3=lists("k3", np.int64),
        head=lists("head", np.int32),
        head_at=lists("head_at", np.int64),
        head_end=lists("head_end", np.int64),
        head_tier=lists("head_tier", np.int8),
        head_cost=lists("head_cost", np.int64),
        head_cls=lists("head_cls", np.int32),
        head_idle=lists("head_idle", np.uint8),
        head_avoid=lists("head_avoid", np.uint8),
        head_rank=lists("head_rank", np.int64),
        head_penalty=lists("head_penalty", np.int32),
        head_x=lists("head_x", np.float64),
        head_group=lists("head_group", np.int32),
        chain=lists("chain", np.int32),
        chain_head=np.full(domains, -1, np.int32),
        kind_group=np.full(3 * len(classes.price), -1, np.int32),
        tier_group=np.zeros((3 * len(classes.price), 6), np.int64),
        level=np.zeros(2, np.int64),
        lane=buffers.array(name + "lane", (keys * machines, 5), np.int32, None),
        lane_at=np.zeros((keys, 2 * len(classes.price) + 1), np.int64),
        lane_machine=buffers.array(name + "lane_machine", (keys * machines,), np.int32, None),
        lane_of=buffers.array(name + "lane_of", (keys * machines,), np.int32, None),
        lane_known=np.full(keys, -1, np.int64),
        takes=lists("takes", np.int32),
        left=np.zeros(width, np.int64),
        most=np.zeros(width, np.int64),
        mark=np.zeros(domains, np.int64),
        dom_stamped=np.zeros((domains, width), np.int64),
        dom_other=np.zeros((domains, width), np.int64),
        dom_free=np.zeros((domains, width), np.int64),
        dom_count=np.zeros(domains, np.int64),
        dom_list=np.zeros(domains, np.int32),
        sum_slot=np.full(max(1, gangs), -1, np.int32),
        slot_type=np.full(slots, -1, np.int32),
        sums=buffers.array(name + "sums", (slots + 1, domains, width), np.int64, None),
        sum_count=buffers.array(name + "sum_count", (slots + 1, domains), np.int64, None),
        slot_seen=np.zeros(max(1, slots), np.int64),
        slot_domain=buffers.array(name + "slot_domain", (slots + 1, domains), np.int32, None),
        slot_size=np.zeros(slots + 1, np.int64),
        yields=np.zeros((domains, width), np.int64),
        yield_count=np.zeros(domains, np.int64),
        yield_type=np.full(4, -1, np.int64),
        groups=buffers.array(name + "groups", (machines if gangs else 0, 5), np.int64, None),
        group_head=np.full(domains, -1, np.int32),
        clock=np.zeros(2, np.int64),
    )
