"""Checks beyond what reading needs."""
