"""Scenario transcripts of the decision engine: pages that read as documentation and run as tests.

    fleet     one machine, one need and one event in a line each
    play      decides, executes the plan, applies events, and decides again
    render    a scenario and its decisions as a page
    supply, priority, lifetime   the scenarios, by what they are about
    write     writes the pages and their index, or checks them

`make transcripts` writes docs/internals/transcripts; `tools/tests/unit/test_transcripts.py` fails
when a page differs from what the engine decides.
"""
