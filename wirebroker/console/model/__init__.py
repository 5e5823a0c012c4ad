"""The data of the console: clusters, their state over time, records, details."""
