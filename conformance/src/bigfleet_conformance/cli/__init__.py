"""The command line: run, list, explain, verify. A thin layer over the library."""
