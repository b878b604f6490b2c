"""Slots, states, transitions, operations and fences: values and functions without I/O or clock."""
