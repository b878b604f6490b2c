"""The generic backend: slots x hosts. Launch, configure, drain, delete, reconcile, heal, resume."""
