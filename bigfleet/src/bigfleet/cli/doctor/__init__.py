"""`bigfleet doctor`: checks an installation, and says what is wrong and how to fix it.

    findings  what a check gives: fine, a note, or wrong with a remedy
    here      this machine: Python, engine, disk, data folder, store, ports, certificates
    fleet     which processes answer: coordinator, shards, providers
    cluster   an API server: version, custom resources, rights
    command   the command line

Every check stands alone: one that fails does not prevent the others. Nothing is changed.
"""
