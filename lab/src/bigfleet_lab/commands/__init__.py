"""`bigfleet simulate` and what its results look like on a terminal.

simulate          the engine in a closed loop, and scenario files of the benchmark's fleets
simulate_cluster  simulated clusters for a running shard
simulate_demo     a small fleet whose demand moves, drawn live: demo_view draws, keys steer it
loop_document     the result of a loop for programs
"""
