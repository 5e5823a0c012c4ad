"""The job that writes files into a topic."""
