"""Calls to whichever member of etcd answers.

address  where etcd is, from `etcd://host:2379,host:2379/prefix`
faults   etcd's errors as the errors of a store
login    user name and password, renewed when the token expires
members  calls to a member: deadlines, fail-over, TLS
"""
