"""A real Kubernetes for tests: its pinned binaries, and control planes made of them on loopback.

The Go modules in the folders beside this file say which versions; `binaries` builds them once into
a cache; `plane` starts and stops control planes. Nothing of the product imports this package.
"""
