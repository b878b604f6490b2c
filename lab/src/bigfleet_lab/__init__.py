"""The laboratory: what drives, imitates and measures BigFleet, and does not run in production.

    commands           `bigfleet simulate`, and the views of its results
    demo               `bigfleet demo`: the whole system on one machine
    bench_coordinator  a coordinator measured as processes
    bench_shard        a shard measured as processes
    profiles           what a scale test runs;  gates  what it is held to, and its summary
    bench_shapes       fleets of one shape each, for `bench_shard`
    bench              `bigfleet bench`: the engine measured inside this process; rows of results
    simcluster         simulated clusters that speak the operator's side of the session
    simulate           the engine in a closed loop; the benchmark's fleets
    fake               a capacity provider for tests: the real kit on machines in memory
    battery            tests that every provider of a cloud takes, on its imitated cloud

A room imports only rooms below it. The laboratory may import all of `bigfleet`; production code
never imports the laboratory. The format of scenario files is production: `bigfleet.scenario`.
"""
