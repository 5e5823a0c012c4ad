"""The testing kit as a client: records read and written, settings for other clients."""
