"""A reference provider: the contract in a few hundred lines, made to be wrong in one place.

It is written on the contract alone, so that the suite is tested against something that shares no
code with what it certifies. Every rule is a method of its own: a mutant overrides one of them.
Its substrate fails on command, as the conformance specification's fault provider does.
"""
