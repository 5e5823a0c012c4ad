"""The job that publishes files to a topic."""
