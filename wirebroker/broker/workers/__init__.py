"""`wirebroker serve --workers N`: brokers of one machine, and the supervisor that keeps them."""
