"""Coordinators of groups and transactions, and their internal topics."""
