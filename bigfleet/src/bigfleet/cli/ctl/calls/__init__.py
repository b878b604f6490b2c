"""Calls of bigfleetctl: coordinators and shards, and what a failed call means.

channels            connections of one run, plaintext or mTLS
coordinator_client  coordinators: calls go to the leader
fleet_client        shards, one by one or all at once
refusals            what a failed call means, and the remedy
"""
