"""The command line. The only package that puts the other parts together."""
