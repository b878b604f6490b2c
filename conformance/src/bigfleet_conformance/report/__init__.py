"""Reports: report.json with its schema, junit.xml, badge.json and report.html, and their check.

`model` builds the one document from which the other three are drawn; `verify` takes a stored folder
apart again.
"""
