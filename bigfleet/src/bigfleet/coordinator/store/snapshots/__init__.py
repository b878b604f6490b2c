"""The whole state as one JSON document.

documents  the document: rows to JSON and back, with a digest
exporter   writes one regularly while this replica leads
"""
