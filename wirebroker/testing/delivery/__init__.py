"""`broker.delivery`: the delivery service on a test broker's log and clock."""
