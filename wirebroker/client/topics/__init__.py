"""Topics, partitions, and requests to their leaders."""
