"""The cluster's metadata: its image, what changed in it, its snapshots and what its version allows."""
