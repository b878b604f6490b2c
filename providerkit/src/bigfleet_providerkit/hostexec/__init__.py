"""Commands on a host: the contract of the hook, first boot, and the channels that carry it.

channels/   ssh, agent, guest and command: how a script and its secret reach a host
scripts/    what runs on the host: wrapper, default hook, agent
"""
