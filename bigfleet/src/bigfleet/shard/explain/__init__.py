"""What was decided, for people, operators and metrics; nothing here changes a decision.

views                 why each need is met or not, made of the last plan when asked
ledger                shortfalls by profile, and for how long
verdicts              the verdicts that changed since a cluster was last told
failing_creates       the plan as it is shown: needs whose Creates keep failing are unmet
need_explanations     what blocks a need and what would help, worked out on request
deficits              what rows lack when some of the machines they claim count as nothing
hints                 how much capacity a cluster's profiles could have
reclaim_audit         which reclaims had a reason outside the engine, and which had none
provisioning_latency  how long clusters wait for the first machine of something new
attribution           where a cycle's time went, as log lines
scenario_export       the present state as a scenario file
"""
