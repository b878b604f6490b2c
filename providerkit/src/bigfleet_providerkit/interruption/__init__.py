"""How likely a machine is taken away: forecasts by type, and what was observed."""
