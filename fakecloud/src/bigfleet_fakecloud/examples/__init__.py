"""Small clouds that show how a page is written."""
