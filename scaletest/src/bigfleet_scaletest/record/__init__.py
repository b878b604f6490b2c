"""The record of a run: samples of all processes, and what the measured window of them comes to."""
