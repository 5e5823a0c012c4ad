"""Handlers for the cluster: brokers, voters, features, log directories."""
