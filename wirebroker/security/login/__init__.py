"""Logins on connections that this process opens."""
