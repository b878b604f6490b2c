"""`bigfleet doctor`: looks at an installation, and says what is wrong and how to mend it.

    findings  what a look gives: fine, a note, or wrong with a remedy
    here      this machine: Python, engine, disk, data folder, store, ports, certificates
    fleet     who answers: coordinator, shards, providers
    cluster   an API server: version, custom resources, rights
    command   the command line

Every look stands alone: one that fails keeps no other from being taken. Nothing is changed.
"""
