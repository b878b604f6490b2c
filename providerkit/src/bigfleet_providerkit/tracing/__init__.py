"""Traces of a provider, for shards that send theirs along; off without `--otlp-endpoint`.

`traces` is what is recorded, `otlp` sends it and is imported only where it is asked for.
"""
