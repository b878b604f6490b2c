"""Commands on shards.

needs             `inspect-needs`: every need with its verdict
need_explanation  why a need is unmet, in words
machines          list, drain and exclude machines
decisions         `watch`: decisions as they happen
pause             pause and resume
"""
