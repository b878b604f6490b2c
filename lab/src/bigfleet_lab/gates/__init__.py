"""What a scale test is held to, and the summary that says how it went.

    quantiles     exact ones from samples, and buckets that hold one of a histogram
    catalogue     every gate: its threshold, the goal beside it, the samples it needs
    verdict       measurements against gates: a gate without a value fails the run
    summary       summary.json

Nothing here measures: values come from the runner, or from a simulation.
"""
