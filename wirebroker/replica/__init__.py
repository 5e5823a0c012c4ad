"""Partitions and their replicas on this node."""
