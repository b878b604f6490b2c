"""The engine in a closed loop on virtual time, and the fleets that benchmarks are made of.

Owns the modelled world around the engine; the rules of the decision stay in `bigfleet.decision`,
the format of scenario files in `bigfleet.scenario`.

    workloads   the benchmark's scenarios by name, each with the result it must have
    building    what all of them are built from;  catalogue  instance types, zones and prices
    plan_execution a plan carried out at once
    loop        plans carried out with random delays; what must not happen is counted
    demo_fleet  a small fleet whose demand moves, for the terminal view
"""
