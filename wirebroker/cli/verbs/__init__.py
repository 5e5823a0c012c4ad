"""The verbs of the command line; table.py lists them, and each module is imported on first use."""
