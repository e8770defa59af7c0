"""Tiered storage: which segments a remote tier holds, where, and which of them a broker reads.

Names and manifests of both layouts become ``StoredSegment`` (``find``); ``lineage`` chooses among them as a broker
does, and ``join`` makes segments of them whose files are read like any others.
"""
