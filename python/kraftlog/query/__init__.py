"""Questions in SQL, over the tables of a log; they need DuckDB.

DuckDB hands the columns and the filters of a query to a dataset of Arrow (``dataset``), which reads what they leave of
the log as the query goes on; ``session`` names the datasets. ``end_query`` recognizes queries for which an end of the
log is enough.

Polars hands predicates to a source of Python in a form of its own, which changes with its releases. Spark has a data
source (``kraftlog.spark``).
"""
