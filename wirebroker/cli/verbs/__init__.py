"""The verbs that table.py lists."""
