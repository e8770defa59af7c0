"""Tiered storage: the segments of a remote tier, their files, and the choice of segments that a broker reads.

Names and manifests of both layouts become ``StoredSegment`` (``find``); ``lineage`` chooses among them as a broker
does, and ``join`` turns them into segments that are read like local ones.
"""
