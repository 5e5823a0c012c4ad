"""SASL on a listener: mechanisms, users, Kerberos."""
