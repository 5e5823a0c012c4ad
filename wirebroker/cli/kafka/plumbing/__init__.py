"""What Kafka's scripts share: flags as Kafka's parser takes them, texts as Java writes them."""
