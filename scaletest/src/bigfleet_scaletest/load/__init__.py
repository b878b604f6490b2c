"""The simulated clusters of a run: their demand, as planned, and how it moves."""
