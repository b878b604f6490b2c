"""Flags, environment and YAML become one checked value; nothing else of the kit reads them."""
