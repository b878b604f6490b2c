"""The channels by which a command reaches a host.

`ssh` connects to the host, `agent` waits for the host to poll (with its server's `certificate`),
`guest` uses the hypervisor's guest agent and `command` the cloud's own run-command service.
"""
