"""Load generators and their requests."""
