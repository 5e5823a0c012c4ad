"""Load generators and the requests that they send."""
