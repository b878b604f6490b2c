"""Nodes that are to be emptied because their machines are wanted back.

    marks       how a node shows that it is being emptied, and how that is undone. Pure
    evictor     one node: ask its Pods to leave until none is left or the time is over
    notices     the Events that a node's owner reads. Which words for which reason
    drains      all of them: instructions, acknowledgements, cancels, what a restart finds

The budgets of Pods are kept by the API server: who may not leave now is asked again later, and at
the end of its grace a node says what is left on it. What then happens to the machine is the
shard's decision.
"""
