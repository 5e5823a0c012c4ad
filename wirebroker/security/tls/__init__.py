"""TLS contexts, key stores, certificates."""
