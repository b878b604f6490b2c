"""Commands that run a component until a signal ends it.

process         flags, settings file, signals: what these commands share
coordinator, shard, operator, pod_controller, dashboard, all_in_one
dashboard_settings, all_in_one_settings
"""
