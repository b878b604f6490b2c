"""Calls of the substrate's API: thread pool, limiter, retries, classes of errors, metrics."""
