"""Partitions and their replicas on this node: roles, high watermark, waiters."""
