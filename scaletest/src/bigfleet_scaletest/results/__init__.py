"""What people and programs get of a run: summary.json, records, and a page that shows them."""
