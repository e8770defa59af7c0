"""Transactions as columns: which records belong to which transaction, how it ended, and who may see them."""
