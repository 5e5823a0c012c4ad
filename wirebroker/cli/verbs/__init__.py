"""The command line's verbs; table.py names them, each module is imported when it is asked for."""
