"""Threads that load and release pages of files."""
