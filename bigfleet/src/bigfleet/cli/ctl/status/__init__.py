"""`status`: the fleet on one screen, what is wrong with it, and what to do.

command    the command
collector  asks coordinators, then all shards at once
overview   the answers as plain values
diagnosis  what is wrong with a fleet: a function of an overview
screen     the overview as people read it
"""
