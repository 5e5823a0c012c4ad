"""Requests that clients have sent, recorded for tests."""
