"""The jobs' command line."""
