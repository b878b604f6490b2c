"""Measuring a shard as it runs: provider, operators and shard are processes of their own that speak
real gRPC on loopback.

    scenario    a benchmark's fleet and demand as protobuf
    provider    the provider's process: machines in memory, transitions that end at once
    operators   the operators' process: a session per cluster, roll-ups on a beat
    processes   starting them, and reading what the shard says of itself
    scenarios   one function per bar
    explanations  explanations on request, and cycles beside them
"""
