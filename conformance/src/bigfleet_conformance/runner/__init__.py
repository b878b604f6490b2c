"""The runner: which behaviours run where, in which order, and what that makes of a provider.

`source` and `process` boot instances, `workshop` lends them to behaviours, `claims` finds out what
a provider offers, `lanes` plans lanes, `execute` runs behaviours within their budgets,
`run` puts it together.
"""
