"""Where the coordinator's rows are kept, and who may write them. See `interface`."""
