"""Becoming the leader, what a leader holds, and losing it.

leader_state   what one leadership holds in memory; writes commands through the store
election_loop  campaigns, leads until the leadership is lost, backs off, campaigns again
ports          `Rebalancer`, the port through which a leader drives `rebalance`
"""
