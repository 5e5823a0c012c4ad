"""Connections that this node opens; README.md shows how to use them."""
