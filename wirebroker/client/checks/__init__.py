"""Checks of a cluster: what `doctor` asks, and what a dry run asks before a change."""
