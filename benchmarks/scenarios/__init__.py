"""Single scenarios, such as starts, compaction and memory."""
