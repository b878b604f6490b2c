"""What every process of BigFleet needs, whatever it does.

Control plane, provider kit and dashboard are built on this package. It imports nothing of ours,
which import-linter checks, so a provider can be built and released without the control plane.

    addresses   which addresses can be listened at, which can be dialled, where plaintext is allowed
    http        the HTTP server of every process: metrics, probes, JSON routes
"""
