"""A data directory without changes to it: read-only files, and changes kept in memory."""
