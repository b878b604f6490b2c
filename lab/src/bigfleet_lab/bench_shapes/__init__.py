"""What a decision costs on fleets without a design: shapes drawn from seeds.

`timings` times decisions on one shape; `__main__` prints rows of bench/results.json and can time
the shapes of single seeds. The shapes themselves are in `bigfleet_lab.simulate.fleet_shapes`.
"""
