"""Scenario files, and the engine in a closed loop on virtual time.

Owns the modelled world around the engine; the rules of the decision stay in `decision`.
"""
