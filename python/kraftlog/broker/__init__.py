"""Replay of a log's records into a live broker, through confluent-kafka."""
