"""A live broker, reached through confluent-kafka: records of a log are produced to it again."""
