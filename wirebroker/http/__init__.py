"""HTTP server: readiness, metrics and more; loaded only if it is configured."""
