"""Prices: offering overrides, live lists, dated seed tables, and currencies."""
