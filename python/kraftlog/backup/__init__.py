"""Copies of partitions, or of stretches of them, that are log directories of their own."""
