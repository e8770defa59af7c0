"""Transactions as columns: which records belong to a transaction, how it ended, and which readers see them.

Folds over headers and markers, visibility, and the packing of metadata transactions. This package opens no files.
"""
