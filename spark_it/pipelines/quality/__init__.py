"""The quality report on topics in log directories."""
