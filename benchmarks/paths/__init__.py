"""Costs of code paths, mostly without sockets."""
