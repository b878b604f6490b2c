"""What the cluster asks for.

requests    a CapacityRequest as a value, or why it cannot be carried
rollup      all CapacityRequests, added up by row, as the frame that is sent
"""
