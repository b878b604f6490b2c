"""Measuring a coordinator as it runs: coordinator, shards and providers are processes of their own
that speak real gRPC on loopback.

    filled      a store with shards, clusters, domains and a provider, before anybody has started
    reporting   the process of many simulated shards: reports on a beat, answers that are timed
    processes   starting a coordinator, and reading what it says of itself
    crowd       200 shards at once: reports, rounds of the rebalancer, memory
    machines    the provider's process of a move: machines in as many zones as there are shards
    owners      who has which machine, and that no other has it
    moving      real shards, one of which lacks machines that others have

Fail-over needs etcd, which is for tests to find: see `tools/bench_coordinator.py`.
"""
