"""A job's run: batches, faults, progress."""
