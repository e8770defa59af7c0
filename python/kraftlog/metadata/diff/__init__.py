"""The changes between two metadata images, as a table and as lines of text."""
