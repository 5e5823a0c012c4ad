"""Configs and quotas."""
