"""The six RPCs: identity, order of checks, List and cursors, the gRPC server around them."""
