"""`bigfleet plan`: one cycle on a scenario file, printed so that a person understands it.

command       the command
table         summary, actions, unmet needs
explain_need  one need in detail: what it asks for, what it got, what would help
"""
