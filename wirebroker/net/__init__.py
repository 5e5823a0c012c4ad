"""Sockets: bytes in, bytes and file slices out."""
