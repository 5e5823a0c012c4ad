"""Quotas of clients and of replication."""
