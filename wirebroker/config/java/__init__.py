"""Java's regular expressions and replacements, as Kafka's configs have them."""
