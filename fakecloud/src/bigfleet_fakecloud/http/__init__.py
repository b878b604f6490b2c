"""The fake's front: the calls that come in over HTTP, paging, control and TLS."""
