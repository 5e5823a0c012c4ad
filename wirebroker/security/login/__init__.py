"""Logins on connections that the broker opens."""
