"""Records read and written."""
