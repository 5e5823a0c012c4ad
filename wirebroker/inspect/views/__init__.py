"""Views of a data directory that do not change it."""
