"""Consumer and share groups: membership, members, offsets."""
