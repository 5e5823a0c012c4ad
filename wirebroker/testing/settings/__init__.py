"""Settings of brokers that run for tests."""
