"""Rows: parsing by a schema, and placing in partitions."""
