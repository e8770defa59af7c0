"""One page about a log: its content, its faults, and what to do next.

``facts`` collects rows of tables, ``findings`` judges them, ``page`` renders HTML. Every number comes from a table;
this package decodes no batches and does not interpret transactions itself.
"""
