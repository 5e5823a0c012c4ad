"""Connections that this process opens; README.md shows how to use them."""
