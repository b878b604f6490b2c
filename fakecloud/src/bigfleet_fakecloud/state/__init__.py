"""What the fake cloud holds: collections, life cycles, operations, tokens and their clock."""
