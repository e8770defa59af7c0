"""A cluster as declarations from which another can be made: commands, Strimzi's resources, Terraform."""
