"""The job that publishes archived records again."""
