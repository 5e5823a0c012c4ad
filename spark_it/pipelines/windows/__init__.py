"""The job that aggregates values by event-time window and key."""
