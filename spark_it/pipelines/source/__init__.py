"""Topics as sources of jobs."""
