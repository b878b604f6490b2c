"""The arrays of a cycle behind one pointer each, for compiled code.

A named tuple of forty arrays is handed to a compiled function as hundreds of scalars; compiling
that takes minutes. Behind a reference the same code compiles in seconds. Interpreted (without
numba), the named tuples themselves serve.
"""

from __future__ import annotations

from typing import Any

from numba import config, njit, types
from numba.experimental import structref

from bigfleet.decision.kernels import layout as la


class _Ref(types.StructRef):  # type: ignore[misc]
    """A heap-allocated struct whose fields are arrays."""

    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


@structref.register
class MachinesRef(_Ref):
    """Refers to ``layout.Machines``."""


class _Machines(structref.StructRefProxy):  # type: ignore[misc]
    pass


@structref.register
class ClassesRef(_Ref):
    """Refers to ``layout.Classes``."""


class _Classes(structref.StructRefProxy):  # type: ignore[misc]
    pass


@structref.register
class IdentitiesRef(_Ref):
    """Refers to ``layout.Identities``."""


class _Identities(structref.StructRefProxy):  # type: ignore[misc]
    pass


@structref.register
class RowsRef(_Ref):
    """Refers to ``layout.Rows``."""


class _Rows(structref.StructRefProxy):  # type: ignore[misc]
    pass


@structref.register
class FactsRef(_Ref):
    """Refers to ``layout.Facts``."""


class _Facts(structref.StructRefProxy):  # type: ignore[misc]
    pass


@structref.register
class HoldingsRef(_Ref):
    """Refers to ``layout.Holdings``."""


class _Holdings(structref.StructRefProxy):  # type: ignore[misc]
    pass


@structref.register
class WorkRef(_Ref):
    """Refers to ``layout.Work``."""


class _Work(structref.StructRefProxy):  # type: ignore[misc]
    pass


@structref.register
class VictimsRef(_Ref):
    """Refers to ``layout.Victims``."""


class _Victims(structref.StructRefProxy):  # type: ignore[misc]
    pass


@structref.register
class ScratchRef(_Ref):
    """Refers to ``layout.Scratch``."""


class _Scratch(structref.StructRefProxy):  # type: ignore[misc]
    pass


structref.define_proxy(_Machines, MachinesRef, list(la.Machines._fields))
structref.define_proxy(_Classes, ClassesRef, list(la.Classes._fields))
structref.define_proxy(_Identities, IdentitiesRef, list(la.Identities._fields))
structref.define_proxy(_Rows, RowsRef, list(la.Rows._fields))
structref.define_proxy(_Facts, FactsRef, list(la.Facts._fields))
structref.define_proxy(_Holdings, HoldingsRef, list(la.Holdings._fields))
structref.define_proxy(_Work, WorkRef, list(la.Work._fields))
structref.define_proxy(_Victims, VictimsRef, list(la.Victims._fields))
structref.define_proxy(_Scratch, ScratchRef, list(la.Scratch._fields))


@njit(cache=True)  # type: ignore[misc]
def _pack_machines(t: Any) -> Any:
    return _Machines(
        t.state,
        t.cls,
        t.cluster,
        t.stamp,
        t.sequence,
        t.leaving_for,
        t.flags,
        t.idle_since,
        t.pods,
        t.order,
        t.rank,
        t.columns,
    )


@njit(cache=True)  # type: ignore[misc]
def _pack_classes(t: Any) -> Any:
    return _Classes(
        t.offers,
        t.price,
        t.loss,
        t.risky,
        t.elastic,
        t.cooling,
        t.pool,
        t.hold,
        t.drain,
    )


@njit(cache=True)  # type: ignore[misc]
def _pack_identities(t: Any) -> Any:
    return _Identities(
        t.key,
        t.cluster,
        t.priority,
        t.interruption,
        t.reclamation,
        t.exact,
        t.first,
    )


@njit(cache=True)  # type: ignore[misc]
def _pack_rows(t: Any) -> Any:
    return _Rows(
        t.position,
        t.parent,
        t.cluster,
        t.priority,
        t.interruption,
        t.reclamation,
        t.match,
        t.aggregate,
        t.unit,
        t.uniform,
        t.width,
        t.dims,
        t.shrunk_at,
        t.blocked,
        t.domain_key,
        t.members,
        t.member,
        t.spread,
        t.spread_key,
        t.spread_skew,
        t.spread_count,
        t.masks,
        t.mask,
        t.mask_column,
        t.mask_value,
        t.gang_type,
    )


@njit(cache=True)  # type: ignore[misc]
def _pack_facts(t: Any) -> Any:
    return _Facts(
        t.matches,
        t.match_start,
        t.match_class,
        t.overhead,
        t.reported,
        t.domain_column,
        t.domain_of_class,
        t.domain_rank,
        t.domain_count,
        t.key_rows,
        t.key_row,
        t.quota,
        t.limits,
        t.pool_free,
    )


@njit(cache=True)  # type: ignore[misc]
def _pack_holdings(t: Any) -> Any:
    return _Holdings(
        t.exact_at,
        t.exact,
        t.key_at,
        t.key,
        t.idle_at,
        t.idle,
        t.coming_at,
        t.coming,
        t.leaving_at,
        t.leaving,
        t.loose_at,
        t.loose,
        t.bucket,
        t.bucket_at,
        t.bucket_end,
        t.domain_at,
        t.domain,
        t.free,
        t.owned,
    )


@njit(cache=True)  # type: ignore[misc]
def _pack_work(t: Any) -> Any:
    return _Work(
        t.claim,
        t.held,
        t.taken,
        t.aside,
        t.kept,
        t.expected,
        t.identity,
        t.keeps,
        t.left,
        t.named,
        t.next_member,
        t.done,
        t.chosen,
        t.domain,
        t.satisfiable,
        t.best,
        t.best_mille,
        t.best_ok,
        t.served,
        t.spread,
        t.used,
        t.spend,
        t.position,
        t.changes,
        t.log,
        t.log_size,
        t.preempt,
        t.grace,
        t.moved,
        t.lost,
        t.victims,
        t.freed,
        t.counters,
    )


@njit(cache=True)  # type: ignore[misc]
def _pack_victims(t: Any) -> Any:
    return _Victims(
        t.excess_at,
        t.excess,
        t.excess_next,
        t.victim_at,
        t.victim,
        t.victim_next,
        t.priority,
        t.worth,
        t.weights,
        t.budget,
    )


@njit(cache=True)  # type: ignore[misc]
def _pack_scratch(t: Any) -> Any:
    return _Scratch(
        t.give_row,
        t.give_flags,
        t.give,
        t.cand,
        t.index,
        t.index2,
        t.k1,
        t.k2,
        t.k3,
        t.head,
        t.head_at,
        t.head_end,
        t.head_tier,
        t.head_cost,
        t.head_x,
        t.takes,
        t.left,
        t.mark,
        t.dom_stamped,
        t.dom_other,
        t.dom_free,
        t.dom_count,
        t.dom_list,
        t.sum_slot,
        t.slot_type,
        t.sums,
        t.sum_count,
        t.slot_seen,
        t.yields,
        t.yield_count,
        t.yield_type,
        t.clock,
    )


_PACKERS = {
    la.Machines: _pack_machines,
    la.Classes: _pack_classes,
    la.Identities: _pack_identities,
    la.Rows: _pack_rows,
    la.Facts: _pack_facts,
    la.Holdings: _pack_holdings,
    la.Work: _pack_work,
    la.Victims: _pack_victims,
    la.Scratch: _pack_scratch,
}


def refer(arrays: Any) -> Any:
    """A reference to a named tuple of arrays, as kernels take it."""
    if config.DISABLE_JIT:
        return arrays
    if isinstance(arrays, la.Machines | la.Classes):
        arrays = type(arrays)(*map(_frozen, arrays))
    return _PACKERS[type(arrays)](arrays)


def _frozen(array: Any) -> Any:
    """Read-only, always: an array that is so only sometimes would be compiled for twice."""
    view = array.view()
    view.flags.writeable = False
    return view
