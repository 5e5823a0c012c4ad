"""TLS over another transport."""
