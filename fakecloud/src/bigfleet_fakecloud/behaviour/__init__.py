"""What makes the fake cloud difficult: faults, delays, limits and background services."""
