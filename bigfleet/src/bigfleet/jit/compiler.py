"""How kernels are compiled that only other kernels call.

Left alone, numba optimises every function together with all it calls, and generates machine code
for it, before the function that calls it does the same again: the lowest of ten levels is optimised
ten times. Kernels compiled here are handed to their callers as they are; only what Python calls is
optimised, once, with everything inside it. That is half of the first start after an install.

The result is the same code: numba puts a callee's instructions into its caller either way. This
uses classes that numba does not promise to keep. Where one of them is missing, kernels are compiled
the long way: the first start takes twice as long, and nothing else changes.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

import numba

_LIBRARY_METHODS = (
    "_optimize_final_module",
    "_finalize_final_module",
    "_finalize_dynamic_globals",
)


def compile_for_callers(function: Any) -> Any:
    """A function that only compiled functions can call."""
    compiler: Any = numba.njit
    pipeline = inner_pipeline()
    if pipeline is None:
        return compiler(function)
    return compiler(no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=pipeline)(
        function
    )


@lru_cache
def inner_pipeline() -> Any:
    """numba's pipeline with the last step exchanged; None for a numba that is built differently."""
    try:
        compiler: Any = import_module("numba.core.compiler")
        machinery: Any = import_module("numba.core.compiler_machinery")
        passes: Any = import_module("numba.core.typed_passes")
        library: Any = import_module("numba.core.codegen").CPUCodeLibrary
        lowering = machinery.register_pass(mutates_CFG=True, analysis_only=False)(
            _lowering_for_callers(passes.NativeLowering)
        )
        builder, base = compiler.DefaultPassBuilder, compiler.CompilerBase
    except (ImportError, AttributeError):
        return None
    if not all(hasattr(library, name) for name in _LIBRARY_METHODS):
        return None
    if not hasattr(builder, "define_nopython_pipeline"):
        return None

    class InnerCompiler(base):  # type: ignore[misc, valid-type]
        def define_pipelines(self) -> list[Any]:
            pipeline: Any = builder.define_nopython_pipeline(self.state)
            pipeline.passes = [
                (lowering if step is passes.NativeLowering else step, words)
                for step, words in pipeline.passes
            ]
            pipeline.finalize()
            return [pipeline]

    return InnerCompiler


def _lowering_for_callers(native_lowering: Any) -> Any:
    """The pass that lowers a function into a library that is only ever linked into others."""

    class LoweringForCallers(native_lowering):  # type: ignore[misc]
        _name = "lower_for_callers"

        def run_pass(self, state: Any) -> bool:
            """Lower without optimising, and stand in for the machine code that is not there."""
            library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
            library._optimize_final_module = _nothing
            library._finalize_final_module = lambda: _close(library)
            state.library = library
            state.flags.no_compile = True
            super().run_pass(state)
            lowered = state["cr"]
            # Calls are resolved by this object. Any builtin of its own will do: there is no code to
            # call, and calling this one from Python is an error, not a crash.
            stand_in = [library].index
            state.targetctx.insert_user_function(stand_in, lowered.fndesc, [library])
            state["cr"] = lowered._replace(cfunc=stand_in)
            return True

    return LoweringForCallers


def _nothing() -> None:
    """The caller's library, which this one is linked into, is optimised instead."""


def _close(library: Any) -> None:
    library._finalize_dynamic_globals()
    library._finalized = True
