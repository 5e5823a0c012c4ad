"""Retention, compaction scheduling and checkpoints."""
