"""What brokers show over HTTP: their metrics, and the controls of the test mode."""
