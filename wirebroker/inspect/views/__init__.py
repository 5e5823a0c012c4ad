"""Views of a data directory that do not change it: read-only files, and changes in memory."""
