"""The command line. The only package that puts the other parts together.

main           `bigfleet`: the program
lazy_commands  every command and the module that is imported when it runs
processes      commands that run a component: shard, coordinator, operator and others
plan           `bigfleet plan`
doctor         `bigfleet doctor`
ctl            `bigfleetctl`; kubectl: `kubectl bigfleet`
output         consoles, tables, progress; help_format: `--help`
errors, extras one-line refusals; packages that an installation lacks
warm_up        the engine made ready before a command decides with it
"""
