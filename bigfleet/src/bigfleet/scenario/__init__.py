"""Scenario files: a fleet and its demand as JSON, decided once outside of a shard.

    document  the format: records of machines and rows of demand, read strictly
    fields    checked values out of JSON, for `document`
    writer    a scenario as a file
    state     a scenario as inventory, demand and carry, ready for the engine
    outcome   a plan in the words of the file it was made from
    supply    which requirement of a need leaves it without machines, found one by one
    errors    what can be wrong with a scenario

`bigfleet plan` and the shard's export of its own state use this. The rules of the decision are in
`decision`.
"""
