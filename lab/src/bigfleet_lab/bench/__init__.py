"""`bigfleet bench`: the engine measured in this process, with every result checked.

command    the command line
suite      the specification's table of benchmarks;  bars  how good each result must be
bench_worlds  what one measurement runs on;  benchmark  cycles timed, plans carried out at once
rows       one row of results as other benchmarks print it
results    the results file
"""
