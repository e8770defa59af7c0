"""The image as the tree of names that ``kafka-metadata-shell`` shows."""
