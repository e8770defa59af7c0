"""Requests and responses of Kafka's protocol: definitions, headers, error codes ("A Guide to the Kafka Protocol")."""
