"""Shapes of instance types, and quantities as Kubernetes writes them."""
