"""Shared parts of verbs: flags, output, profiles, completion, the connection to a cluster."""
