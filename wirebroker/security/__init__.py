"""Authentication: SASL, TLS, tokens, and the broker's own logins."""
