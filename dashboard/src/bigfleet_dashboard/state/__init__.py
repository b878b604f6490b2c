"""What is known of the fleet now, as compact tables, and what it was like a while ago.

    names      texts as small numbers, the same for all tables
    machines   columns of one shard's machines;  fleetmap  all machines as the map draws them
    needs      rows with verdicts, as filtered and sorted lists
    decisions  the last decisions, each with its end
    shards     one shard and everything it said;  pages  its cycle times and metrics
    history    points for charts
    fleet      all of it together

Nothing here waits or calls; sources write, the web reads, both on one event loop.
"""
