"""A whole shard on virtual time, for tests that tell one story each.

    living   the production shard between model providers and simulated clusters, run by a story
    several  two shards and a coordinator, one lacking what the other has
    census   how many things each memory of a shard holds, by name
    soaking  tens of thousands of cycles of churn, and what must hold at their end

`sim` draws everything from a seed; here a test says what there is and what happens.
"""
