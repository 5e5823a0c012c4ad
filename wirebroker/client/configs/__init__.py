"""Configs and quotas, read and changed."""
