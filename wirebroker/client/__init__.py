"""A client of any Kafka, for the command line: what it asks and how it tells what went wrong."""
