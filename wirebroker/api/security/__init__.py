"""Handlers for logins, ACLs, users and tokens."""
