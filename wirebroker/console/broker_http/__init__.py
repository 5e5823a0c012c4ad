"""The controls of brokers in test mode, over HTTP."""
