"""What happened in a cluster, in sentences, from changes of its metadata image."""
