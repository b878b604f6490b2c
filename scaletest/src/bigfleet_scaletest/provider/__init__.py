"""The provider of a run: what it offers, how long things take, and what starts out idle."""
