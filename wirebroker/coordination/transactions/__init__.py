"""Transaction coordinators, their markers, and verification."""
