"""The rows of each table, and ``Log``, which offers them.

``table_rows`` has the rows of every table by its name; the other files have those of a family of tables. Columns are
defined in ``kraftlog.schema``. Files are read through ``kraftlog.read`` alone, and nothing here writes.
"""
