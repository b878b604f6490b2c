"""One running provider: what is made ready before the start, and what is started and stopped.

`prepare` checks options and makes the parts, `assembly` wires the backend, and `running_provider`
opens ports, starts the loops and ends them in order.
"""
