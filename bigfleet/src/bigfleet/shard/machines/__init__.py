"""The machines as this shard knows them.

    book                the only writer of machines; tells subscribers of each change
    merge_record        what an observed record means for a machine that is known: a pure rule
    node_observations   what clusters say of the nodes that machines have become
    node_reports        one such message as values
    journal_facts       what the journal adds to a machine that is listed for the first time
    exclusions          machines that a person keeps out, applied to the book
    orders              what is to be done to one machine: a value

The columns are `bigfleet.inventory`; Lists come from `providers`, orders from `decide`.
"""
