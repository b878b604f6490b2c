"""Commands for a person beside a running provider, over a socket only its owner can open."""
