"""Shell scripts that run on hosts, as files: wrapper, default hook, agent."""
