"""Grafana boards from one description, so that no query drifts from the names of metrics.

    panels    kinds of panels, as Grafana reads them
    fleet     the board `bigfleet-fleet`: rows, panels and their queries
    promised_queries queries that users are promised, by their numbers
    write     `python -m boards.write` writes the files of the chart

A test holds every query against the registries of the processes that are asked.
"""
