"""Topics as sources of a job: positions, topic ids, lost records."""
