"""Files of a data directory as rows, printed as text or JSON."""
