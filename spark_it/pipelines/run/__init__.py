"""The life of a job: batches, faults, progress."""
