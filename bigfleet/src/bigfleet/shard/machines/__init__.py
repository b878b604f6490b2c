"""The machines as this shard knows them.

    book                the only writer of machines; tells subscribers of each change
    merge_record        what an observed record means for a known machine, and the journal for one
                        that is new: pure rules
    node_observations   what clusters say of the nodes that machines have become
    exclusions          machines that a person keeps out, applied to the book
    orders              what is to be done to one machine: a value

The columns are `bigfleet.inventory`; Lists come from `providers`, orders from `decide`.
"""
