"""Transitions of machines, and the loops that keep records and hosts in agreement.

    reconcile/   compares all hosts with all records and repairs what differs
    state/       records, operations, locks and pins, with every change made durable

`runner` starts a transition and settles its end, `steps` are what each kind does, `heal` frees
failed slots, `resume` continues what a restart cut off and `loops` are the periodic tasks. `hosts`
writes hosts into records, `gather` bounds parallel steps, and `bug_log` reports a substrate's bug.
"""
