"""The testing kit as a client; settings for other clients."""
