"""The arrays of a cycle behind one pointer each, for compiled code.

A named tuple of forty arrays is handed to a compiled function as hundreds of scalars; compiling
that takes minutes. Behind a reference the same code compiles in seconds. The arrays are borrowed:
kernels do not count references to them, which would cost more than the work itself; the proxy keeps
them alive. Interpreted (without numba), the named tuples themselves serve.
"""

from __future__ import annotations

from typing import Any

from numba import config, types
from numba.core.imputils import impl_ret_borrowed
from numba.experimental import structref
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from bigfleet.decision.kernels import layout as la
from bigfleet.jit.decorators import jit


def _borrow_code(typing_context: Any, array: Any) -> Any:
    """The same array without an owner."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = make_array(signature.args[0])(context, builder, value=args[0])
        target = make_array(signature.return_type)(context, builder)
        populate_array(
            target,
            data=source.data,
            shape=source.shape,
            strides=source.strides,
            itemsize=source.itemsize,
            meminfo=None,
        )
        return impl_ret_borrowed(context, builder, signature.return_type, target._getvalue())

    return array(array), generate


_borrow: Any = intrinsic(_borrow_code)


class _Ref(types.StructRef):
    """A heap-allocated struct whose fields are arrays."""

    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


@structref.register
class MachinesRef(_Ref):
    """Refers to ``layout.MachineArrays``."""


class _Machines(structref.StructRefProxy):
    """Holds on to the arrays it refers to."""


@structref.register
class ClassesRef(_Ref):
    """Refers to ``layout.ClassArrays``."""


class _Classes(structref.StructRefProxy):
    """Holds on to the arrays it refers to."""


@structref.register
class IdentitiesRef(_Ref):
    """Refers to ``layout.Identities``."""


class _Identities(structref.StructRefProxy):
    """Holds on to the arrays it refers to."""


@structref.register
class RowsRef(_Ref):
    """Refers to ``layout.Rows``."""


class _Rows(structref.StructRefProxy):
    """Holds on to the arrays it refers to."""


@structref.register
class FactsRef(_Ref):
    """Refers to ``layout.Facts``."""


class _Facts(structref.StructRefProxy):
    """Holds on to the arrays it refers to."""


@structref.register
class HoldingsRef(_Ref):
    """Refers to ``layout.Holdings``."""


class _Holdings(structref.StructRefProxy):
    """Holds on to the arrays it refers to."""


@structref.register
class WorkRef(_Ref):
    """Refers to ``layout.Work``."""


class _Work(structref.StructRefProxy):
    """Holds on to the arrays it refers to."""


@structref.register
class VictimsRef(_Ref):
    """Refers to ``layout.Victims``."""


class _Victims(structref.StructRefProxy):
    """Holds on to the arrays it refers to."""


@structref.register
class ScratchRef(_Ref):
    """Refers to ``layout.Scratch``."""


class _Scratch(structref.StructRefProxy):
    """Holds on to the arrays it refers to."""


structref.define_proxy(_Machines, MachinesRef, list(la.MachineArrays._fields))
structref.define_proxy(_Classes, ClassesRef, list(la.ClassArrays._fields))
structref.define_proxy(_Identities, IdentitiesRef, list(la.Identities._fields))
structref.define_proxy(_Rows, RowsRef, list(la.Rows._fields))
structref.define_proxy(_Facts, FactsRef, list(la.Facts._fields))
structref.define_proxy(_Holdings, HoldingsRef, list(la.Holdings._fields))
structref.define_proxy(_Work, WorkRef, list(la.Work._fields))
structref.define_proxy(_Victims, VictimsRef, list(la.Victims._fields))
structref.define_proxy(_Scratch, ScratchRef, list(la.Scratch._fields))


@jit
def _pack_machines(t: Any) -> Any:
    return _Machines(
        _borrow(t.state),
        _borrow(t.cls),
        _borrow(t.cluster),
        _borrow(t.stamp),
        _borrow(t.sequence),
        _borrow(t.leaving_for),
        _borrow(t.flags),
        _borrow(t.idle_since),
        _borrow(t.pods),
        _borrow(t.order),
        _borrow(t.rank),
        _borrow(t.columns),
    )


@jit
def _pack_classes(t: Any) -> Any:
    return _Classes(
        _borrow(t.offers),
        _borrow(t.price),
        _borrow(t.loss),
        _borrow(t.risky),
        _borrow(t.elastic),
        _borrow(t.cooling),
        _borrow(t.pool),
        _borrow(t.hold),
        _borrow(t.drain),
    )


@jit
def _pack_identities(t: Any) -> Any:
    return _Identities(
        _borrow(t.key),
        _borrow(t.cluster),
        _borrow(t.priority),
        _borrow(t.interruption),
        _borrow(t.reclamation),
        _borrow(t.exact),
        _borrow(t.first),
    )


@jit
def _pack_rows(t: Any) -> Any:
    return _Rows(
        _borrow(t.position),
        _borrow(t.parent),
        _borrow(t.cluster),
        _borrow(t.priority),
        _borrow(t.interruption),
        _borrow(t.reclamation),
        _borrow(t.match),
        _borrow(t.own_match),
        _borrow(t.aggregate),
        _borrow(t.unit),
        _borrow(t.uniform),
        _borrow(t.width),
        _borrow(t.dims),
        _borrow(t.shrunk_at),
        _borrow(t.blocked),
        _borrow(t.domain_key),
        _borrow(t.members),
        _borrow(t.member),
        _borrow(t.spread),
        _borrow(t.spread_key),
        _borrow(t.spread_skew),
        _borrow(t.spread_count),
        _borrow(t.masks),
        _borrow(t.mask),
        _borrow(t.mask_column),
        _borrow(t.mask_value),
        _borrow(t.gang_type),
    )


@jit
def _pack_facts(t: Any) -> Any:
    return _Facts(
        _borrow(t.matches),
        _borrow(t.match_start),
        _borrow(t.match_class),
        _borrow(t.overhead),
        _borrow(t.reported),
        _borrow(t.domain_column),
        _borrow(t.domain_of_class),
        _borrow(t.domain_rank),
        _borrow(t.domain_count),
        _borrow(t.key_rows),
        _borrow(t.key_row),
        _borrow(t.quota),
        _borrow(t.limits),
        _borrow(t.pool_free),
    )


@jit
def _pack_holdings(t: Any) -> Any:
    return _Holdings(
        _borrow(t.exact_at),
        _borrow(t.exact),
        _borrow(t.key_at),
        _borrow(t.key),
        _borrow(t.idle_at),
        _borrow(t.idle),
        _borrow(t.coming_at),
        _borrow(t.coming),
        _borrow(t.leaving_at),
        _borrow(t.leaving),
        _borrow(t.loose_at),
        _borrow(t.loose),
        _borrow(t.loose_by_stamp),
        _borrow(t.group),
        _borrow(t.group_at),
        _borrow(t.group_end),
        _borrow(t.group_list),
        _borrow(t.place),
        _borrow(t.place_at),
        _borrow(t.place_machine),
        _borrow(t.place_known),
        _borrow(t.bucket),
        _borrow(t.bucket_at),
        _borrow(t.bucket_end),
        _borrow(t.domain_at),
        _borrow(t.domain),
        _borrow(t.free),
        _borrow(t.owned),
    )


@jit
def _pack_work(t: Any) -> Any:
    return _Work(
        _borrow(t.claim),
        _borrow(t.held),
        _borrow(t.taken),
        _borrow(t.aside),
        _borrow(t.kept),
        _borrow(t.expected),
        _borrow(t.identity),
        _borrow(t.turn),
        _borrow(t.left),
        _borrow(t.named),
        _borrow(t.next_member),
        _borrow(t.done),
        _borrow(t.chosen),
        _borrow(t.domain),
        _borrow(t.satisfiable),
        _borrow(t.best),
        _borrow(t.best_mille),
        _borrow(t.best_ok),
        _borrow(t.served),
        _borrow(t.spread),
        _borrow(t.used),
        _borrow(t.spend),
        _borrow(t.position),
        _borrow(t.stale),
        _borrow(t.front),
        _borrow(t.changes),
        _borrow(t.log),
        _borrow(t.log_size),
        _borrow(t.preempt),
        _borrow(t.grace),
        _borrow(t.moved),
        _borrow(t.lost),
        _borrow(t.victims),
        _borrow(t.freed),
        _borrow(t.cancel),
        _borrow(t.counters),
    )


@jit
def _pack_victims(t: Any) -> Any:
    return _Victims(
        _borrow(t.excess_at),
        _borrow(t.excess),
        _borrow(t.excess_next),
        _borrow(t.victim_at),
        _borrow(t.victim),
        _borrow(t.victim_next),
        _borrow(t.bucket_at),
        _borrow(t.bucket),
        _borrow(t.priority),
        _borrow(t.worth),
        _borrow(t.weights),
        _borrow(t.budget),
    )


@jit
def _pack_scratch(t: Any) -> Any:
    return _Scratch(
        _borrow(t.give_row),
        _borrow(t.give_flags),
        _borrow(t.give),
        _borrow(t.cand),
        _borrow(t.sorted),
        _borrow(t.spare),
        _borrow(t.k1),
        _borrow(t.k2),
        _borrow(t.k3),
        _borrow(t.head),
        _borrow(t.head_at),
        _borrow(t.head_end),
        _borrow(t.head_tier),
        _borrow(t.head_cost),
        _borrow(t.head_cls),
        _borrow(t.head_idle),
        _borrow(t.head_avoid),
        _borrow(t.head_rank),
        _borrow(t.head_penalty),
        _borrow(t.head_x),
        _borrow(t.chain),
        _borrow(t.chain_head),
        _borrow(t.takes),
        _borrow(t.left),
        _borrow(t.most),
        _borrow(t.mark),
        _borrow(t.dom_stamped),
        _borrow(t.dom_other),
        _borrow(t.dom_free),
        _borrow(t.dom_count),
        _borrow(t.dom_list),
        _borrow(t.sum_slot),
        _borrow(t.slot_type),
        _borrow(t.sums),
        _borrow(t.sum_count),
        _borrow(t.slot_seen),
        _borrow(t.slot_domain),
        _borrow(t.slot_size),
        _borrow(t.yields),
        _borrow(t.yield_count),
        _borrow(t.yield_type),
        _borrow(t.groups),
        _borrow(t.group_head),
        _borrow(t.clock),
    )


_PACKERS = {
    la.MachineArrays: _pack_machines,
    la.ClassArrays: _pack_classes,
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
    if getattr(config, "DISABLE_JIT", False):
        return arrays
    if isinstance(arrays, la.MachineArrays | la.ClassArrays):
        arrays = type(arrays)(*map(_frozen, arrays))
    reference = _PACKERS[type(arrays)](arrays)
    reference.arrays = arrays
    return reference


def _frozen(array: Any) -> Any:
    """Read-only, always: an array that is so only sometimes would be compiled for twice."""
    view = array.view()
    view.flags.writeable = False
    return view
