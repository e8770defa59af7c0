"""One page about a log: what is there, what is wrong with it, and what to do next.

``facts`` collects what the tables say, ``findings`` judges it, ``page`` lays it out as HTML. Every number is one that a
table has; nothing here decodes a batch or decides what a transaction is.
"""
