"""Handlers for configs and quotas."""
