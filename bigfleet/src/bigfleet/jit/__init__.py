"""Compiled functions over columns: everything that knows numba, apart from the kernels' references.

    decorators  `jit` for kernels that Python calls, `inner` for kernels that other kernels call
    compiler    how inner kernels are compiled: once, inside their callers
    cache       the folder in which compiled code is kept

Imports nothing of ours. Kernels are plain Python, so they also run interpreted.
"""
