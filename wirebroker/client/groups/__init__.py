"""Consumer and share groups."""
