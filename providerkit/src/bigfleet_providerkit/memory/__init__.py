"""The substrate in memory: what `--use-fake-backend` runs on, and its unreliable cousin."""
