"""Log lines: `<time> <LEVEL> <message> key=value ...` on stderr, or the same as JSON."""
