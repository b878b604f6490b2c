"""Credentials that follow their files, and the floor of TLS 1.3."""
