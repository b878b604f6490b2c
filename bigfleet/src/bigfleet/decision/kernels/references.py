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


def _borrow_code(typing_context: Any, arrays: Any) -> Any:
    """The same arrays without an owner."""
    borrowed = types.Tuple(tuple(arrays))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = []
        for place, kind in enumerate(signature.args[0]):
            value = builder.extract_value(args[0], place)
            source = make_array(kind)(context, builder, value=value)
            target = make_array(kind)(context, builder)
            populate_array(
                target,
                data=source.data,
                shape=source.shape,
                strides=source.strides,
                itemsize=source.itemsize,
                meminfo=None,
            )
            found.append(target._getvalue())
        result = context.make_tuple(builder, borrowed, found)
        return impl_ret_borrowed(context, builder, borrowed, result)

    return borrowed(arrays), generate


_borrow: Any = intrinsic(_borrow_code)


class _Ref(types.StructRef):
    """A heap-allocated struct whose fields are arrays."""

    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


def _kind_of(name: str) -> Any:
    """The type of references to one named tuple; compiled code finds it again by its name."""
    return structref.register(type(name, (_Ref,), {"__module__": __name__}))


def _holder(name: str, kind: Any, arrays: Any) -> Any:
    """Its form in Python, which holds on to the arrays it refers to."""
    holder = type(name, (structref.StructRefProxy,), {"__module__": __name__})
    structref.define_proxy(holder, kind, list(arrays._fields))
    return holder


MachinesRef = _kind_of("MachinesRef")
ClassesRef = _kind_of("ClassesRef")
IdentitiesRef = _kind_of("IdentitiesRef")
RowsRef = _kind_of("RowsRef")
FactsRef = _kind_of("FactsRef")
HoldingsRef = _kind_of("HoldingsRef")
WorkRef = _kind_of("WorkRef")
VictimsRef = _kind_of("VictimsRef")
ScratchRef = _kind_of("ScratchRef")
_Machines = _holder("_Machines", MachinesRef, la.MachineArrays)
_Classes = _holder("_Classes", ClassesRef, la.ClassArrays)
_Identities = _holder("_Identities", IdentitiesRef, la.Identities)
_Rows = _holder("_Rows", RowsRef, la.Rows)
_Facts = _holder("_Facts", FactsRef, la.Facts)
_Holdings = _holder("_Holdings", HoldingsRef, la.Holdings)
_Work = _holder("_Work", WorkRef, la.Work)
_Victims = _holder("_Victims", VictimsRef, la.Victims)
_Scratch = _holder("_Scratch", ScratchRef, la.Scratch)


@jit
def _pack_machines(t: Any) -> Any:
    return _Machines(*_borrow(t))


@jit
def _pack_classes(t: Any) -> Any:
    return _Classes(*_borrow(t))


@jit
def _pack_identities(t: Any) -> Any:
    return _Identities(*_borrow(t))


@jit
def _pack_rows(t: Any) -> Any:
    return _Rows(*_borrow(t))


@jit
def _pack_facts(t: Any) -> Any:
    return _Facts(*_borrow(t))


@jit
def _pack_holdings(t: Any) -> Any:
    return _Holdings(*_borrow(t))


@jit
def _pack_work(t: Any) -> Any:
    return _Work(*_borrow(t))


@jit
def _pack_victims(t: Any) -> Any:
    return _Victims(*_borrow(t))


@jit
def _pack_scratch(t: Any) -> Any:
    return _Scratch(*_borrow(t))


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
