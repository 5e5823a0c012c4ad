"""How `kafka-console-consumer` prints records: Kafka's formatters and deserializers."""
