"""Request handlers of share groups."""
