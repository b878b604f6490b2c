"""How a move advances from its plan to its end.

advance            the next step of a move: a function of what both shards hold and reply
instruction_texts  a step as the instruction that a shard receives
move_tracker       what one leadership knows of the moves under way
"""
