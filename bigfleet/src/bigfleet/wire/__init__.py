"""Between protobuf messages and the values of `model`: validation at the edge, both ways."""
