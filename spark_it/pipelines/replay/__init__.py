"""The job that sends a topic's records through a function into another topic."""
