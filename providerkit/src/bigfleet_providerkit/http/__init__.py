"""Metrics and probes over HTTP, on threads of their own."""
