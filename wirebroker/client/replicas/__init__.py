"""Replicas: elections, reassignments, moves between log directories."""
