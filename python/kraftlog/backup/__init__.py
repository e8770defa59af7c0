"""Copies of partitions, or of stretches of them, as separate log directories."""
