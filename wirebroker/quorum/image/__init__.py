"""The cluster image that this node has read from the metadata log."""
