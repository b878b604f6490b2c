"""What the substrate has against what the records say: a pure plan, and its careful execution."""
