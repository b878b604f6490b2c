"""The contract between BigFleet's parts, as Python.

Holds what is generated from the protocol definitions and nothing written by hand beyond this
file, so that whoever speaks the protocol depends on the protocol alone.
"""
