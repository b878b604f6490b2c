"""What bigfleetctl prints.

rows     one row, three forms: table, JSON, YAML
formats  times, amounts, labels and enums as people and programs read them
"""
