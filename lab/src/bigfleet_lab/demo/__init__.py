"""`bigfleet demo`: the whole system on one machine, started, watched and stopped together.

    layout      which processes there are, with their addresses, flags and files
    ports       whether their addresses are free, before anything starts
    state       whether the data folder can be gone on with
    supervisor  starts them, restarts what dies, ends all of them
    scenarios   what can be made to happen, and how
    control     how the page and other terminals ask for it: a socket in the data folder
    summary     what BigFleet did about it, in a few lines
    cloud, clusters  the two simulated parts, processes of their own that take orders on stdin
    orders      orders as lines
    command     the command line

Coordinator, shard and dashboard are the ordinary commands. What is simulated: the machines behind
the provider, and the clusters behind the sessions.
"""
