"""The console: clusters in a browser."""
