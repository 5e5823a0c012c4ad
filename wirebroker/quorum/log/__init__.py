"""The metadata log and its snapshots."""
