"""Simulated clusters: the operator's side of the session, for many clusters from one process."""
