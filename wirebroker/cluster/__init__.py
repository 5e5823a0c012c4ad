"""Replicas, partitions and the metadata log of this node."""
