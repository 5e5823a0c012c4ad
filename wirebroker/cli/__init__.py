"""The command line: the program, the table of verbs, and verbs that need no cluster."""
