"""How kernels are compiled that only other kernels call.

Left alone, numba optimises every function together with all it calls, and generates machine code
for it, before the function that calls it does the same again: the lowest of ten levels is optimised
ten times. Kernels compiled here are handed to their callers as they are; only what Python calls is
optimised, once, with everything inside it. That is half of the first start after an install.

The result is the same code: numba puts a callee's instructions into its caller either way.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numba

_compiler: Any = import_module("numba.core.compiler")
_machinery: Any = import_module("numba.core.compiler_machinery")
_passes: Any = import_module("numba.core.typed_passes")
_libraries: Any = import_module("numba.core.codegen")
_NEEDED = ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals")


def compile_for_callers(function: Any) -> Any:
    """A function that compiled functions can call, and nobody else."""
    compiler: Any = numba.njit
    if not all(hasattr(_libraries.CPUCodeLibrary, name) for name in _NEEDED):
        # A numba that works differently inside: the same code, compiled the long way.
        return compiler(function)
    return compiler(no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_InnerCompiler)(
        function
    )


@_machinery.register_pass(mutates_CFG=True, analysis_only=False)
class _LowerForCallers(_passes.NativeLowering):  # type: ignore[misc]
    """Lowers a function into a library that is only ever linked into others."""

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


def _nothing() -> None:
    """Whoever links the library optimises."""


def _close(library: Any) -> None:
    library._finalize_dynamic_globals()
    library._finalized = True


class _InnerCompiler(_compiler.CompilerBase):  # type: ignore[misc]
    """numba's pipeline with the last step exchanged."""

    def define_pipelines(self) -> list[Any]:
        """The one pipeline."""
        passes: Any = _compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_LowerForCallers if step is _passes.NativeLowering else step, words)
            for step, words in passes.passes
        ]
        passes.finalize()
        return [passes]
