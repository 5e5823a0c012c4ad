"""Tools for dead letters of share groups, of the delivery service, and of consumers."""
