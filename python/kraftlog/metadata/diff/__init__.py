"""The difference of two images."""
