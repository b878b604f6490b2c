"""BigFleet: the control plane that decides which machines serve which cluster."""

__version__ = "0.1.0"
