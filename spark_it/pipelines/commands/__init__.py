"""The command line of the jobs."""
