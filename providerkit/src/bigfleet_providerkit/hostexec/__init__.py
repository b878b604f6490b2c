"""Running things on a host: one hook contract, one wrapper script, four channels."""
