"""The engine: normalise, assign, preempt, reclaim, and explain.

A pure function from demand and inventory to a plan. It has no clock, no I/O and no memory.
"""
