"""Benchmarks of the provider side, with their bars."""
