"""Carrying out what was decided: orders become calls, and every order ends in exactly one outcome.

    rails           what may be executed at all: reclaim cap, limit per cycle, pause, dry-run
    executor        takes orders; the workers; one action per machine, each with its own deadline
    admission       whether an order still fits the world when it is handed over
    fair_queue      attempts that wait for a worker, and whose turn it is
    attempts        one order on its way
    actions         what each kind of order does to providers, operators, journal and book
    pending_drains  machines in their grace, between the instruction and the Drain
    settlement      what an action's end means: one outcome, the book set right
    outcomes        how an action can end
    backoff         what went wrong, how long to keep off it, what the next decision must know
    book_listener   what the book's changes say: ends of transitions, late failures
    manual_drain    drains that a person or another shard asks for
    held_back       decisions that rails do not let happen, recorded like those that do
    decisions       the last orders and how they ended
    audit_log       the same as lines of a file
    traces          what a shard adds to a trace
    ports           what acting needs from other rooms

Nothing is retried blindly: an action that fails takes its machine back to where it was, and the
next cycle derives again from the truth.
"""
