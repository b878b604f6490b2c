"""What the owners of CapacityRequests are told.

writer     requests whose roll-up was taken become Acknowledged, in batches
verdicts   requests that stay unmet say why, at a bounded rate
"""
