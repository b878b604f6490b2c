"""Which moves to begin: a function of reports and tables.

catalogue       kinds of machines and the shapes that they fit, over all shards
report_reader   reports as values; `PlanningInput`: the tables that planning reads
supply          what shards could give, as columns
usage           what shards use of each instance type
donors          which shards give, tier by tier
planner         the moves to begin, and why other shortfalls are left alone
"""
