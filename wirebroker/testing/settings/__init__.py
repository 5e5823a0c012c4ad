"""Settings of test brokers."""
