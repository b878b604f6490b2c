"""The decision cycle.

    cycle_timer  when the next cycle begins: on the tick, or earlier with a reason
    cycle        one cycle: merge, decide away from the event loop, hand over orders
    inputs       what a cycle decides on besides machines
    orders       a plan as orders
    watchdog     discards a decision that takes too long
    outputs      rails, the queue, and everything that shows what was decided

The decision itself is `bigfleet.decision`; carrying it out is `act`.
"""
