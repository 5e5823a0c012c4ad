"""Followers: fetchers, ISR changes, moves between log directories."""
