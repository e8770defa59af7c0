"""Typed records: what each record of an internal topic, or of the metadata log, means."""
