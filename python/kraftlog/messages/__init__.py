"""Typed messages: records of the internal topics and of the metadata log, in every version.

``definitions`` are compiled to programs (``program``) that the native interpreter runs; ``reader`` decodes to columns
and JSON, ``writer`` encodes, ``defaults`` has the rule for absent fields. This package opens no log files and has no
code for single messages.
"""
