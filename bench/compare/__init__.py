"""Other implementations of Kafka's record format, pinned, that do the same work on the same files."""
