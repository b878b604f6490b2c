"""Whether the node of a machine is Ready in its cluster, as far as the provider can see itself."""
