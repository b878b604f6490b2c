"""What every process of BigFleet needs, whatever it does.

Control plane, provider kit and dashboard are built on this package. It imports nothing of ours,
which import-linter checks, so a provider can be built and released without the control plane.

    addresses   which addresses can be listened at, which can be dialled, where plaintext is allowed
    identifiers which ids, label keys and groups are taken from outside, and how long texts are cut
    files       files and folders of a process's state, for their owner alone
    http        the HTTP server of every process: metrics, probes, JSON routes
"""
