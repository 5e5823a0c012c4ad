"""`wirebroker serve --workers N`: several brokers on one machine, and their supervisor."""
