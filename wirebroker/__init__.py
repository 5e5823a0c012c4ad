"""wirebroker: a Kafka broker in Python whose wire, disk and metadata formats are Apache Kafka's."""

__version__ = "0.1.0"
