"""Amounts: of resources, and of money that a penalty stands for.

quantity    Kubernetes quantities, exactly
resources   sets of resources in whole thousandths, and their arithmetic
penalty     penalty buckets
readable    amounts as people read them
"""
