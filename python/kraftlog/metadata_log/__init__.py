"""The metadata log: its files, what is missing in it, its image and its snapshots."""
