"""Kafka's protocol over log directories: connections, and a file for each group of requests."""
