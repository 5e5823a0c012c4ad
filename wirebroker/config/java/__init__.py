"""Java's formats in Kafka's configs: properties, JAAS, regular expressions."""
