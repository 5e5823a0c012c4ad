"""Single scenarios: starts, recovery, compaction, memory, verbs."""
