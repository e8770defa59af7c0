"""The rows of each table, and ``Log``, which offers them.

``table.py`` says what a table is, ``all_tables.py`` lists them with the options that they have (``options.py``), and
``read.py`` is one pass that makes rows; the other files have the rows of a family of tables. Columns are defined in
``kraftlog.schema``. Files are read through ``kraftlog.read`` alone, and nothing here writes.
"""
