"""Rows: one schema, one set of queries, one writer."""
