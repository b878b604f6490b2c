"""Scenario files, benchmark workloads, and the engine in a closed loop on virtual time.

Owns the modelled world around the engine; the rules of the decision stay in `decision`.

    scenario  scenario files: read strictly, written again
    world     a scenario as inventory, demand and carry
    workloads the benchmark's scenarios, each with the result it must have
    benchmark a plan carried out at once; cycles timed
    loop      plans carried out with random delays; what must not happen is counted
    demo      a small fleet whose demand moves, for the terminal view
"""
