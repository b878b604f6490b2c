"""The whole state as one JSON document.

documents  the document: rows to JSON and back, with a digest
exporter   writes one regularly while this replica leads
restore    puts a document back into a store
"""
