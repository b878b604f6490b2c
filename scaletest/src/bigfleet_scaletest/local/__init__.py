"""The substrate local-process: everything as processes on this machine, on loopback."""
