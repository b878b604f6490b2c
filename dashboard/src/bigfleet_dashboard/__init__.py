"""The dashboard: a page that shows a fleet, and the server that gathers what it shows.

    config      what it was told: addresses, certificates, who may look
    sources/    where facts come from: coordinator, shards, their pages, Prometheus, clusters
    state/      what is known now, as compact tables; history for the charts
    explain, cost what a person reads: why a need is unmet, where the money goes
    whatif/     the engine on a copy of the present state
    web/        JSON API, live events, the page, and who may ask
    static/     the page: ES modules and style sheets, served as they are
    server      all of it as one process

It reads and never writes: of the control plane it calls what the readonly identity may call. Of
bigfleet it imports model, inventory and decision, for what-if, and nothing else.
"""

__version__ = "0.1.0"
