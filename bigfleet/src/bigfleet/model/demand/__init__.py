"""Demand: what clusters want machines for.

need          one row of a cluster's demand, and the order in which rows are served
profile       what makes two requests the same demand
requirements  conditions on a machine's labels
taints        taints of machines and tolerations of needs
"""
