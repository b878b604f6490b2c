"""Executing: orders become calls, and every order ends in exactly one outcome.

    rails      what may be executed at all: reclaim cap, limit per cycle, pause, dry-run
    pool       the queue and the workers; one action per machine, each with its own deadline
    actions    what each kind of order does to providers, operators, journal and book
    drains     machines in their grace, between the instruction and the Drain
    failures   what went wrong, how long to keep off it, what the next decision must know
    watch      what the book's changes tell: ends of transitions, late failures
    decisions  the last orders and how they ended; audit writes them down, rotation keeps files

Nothing is retried blindly: an action that fails takes its machine back to where it was, and the
next cycle derives again from the truth.
"""
