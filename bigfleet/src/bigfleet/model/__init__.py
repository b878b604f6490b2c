"""Plain values: machines and their states, quantities, requirements, profiles and needs.

Knows no transport, no storage and no other package of ours.
"""
