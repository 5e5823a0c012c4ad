"""Settings of TLS, SASL, OAuth and Kerberos."""
