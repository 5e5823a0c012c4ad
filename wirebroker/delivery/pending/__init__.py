"""Pending entries of partitions, and the machine that plans transactions."""
