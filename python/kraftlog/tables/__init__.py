"""The rows of each table, and ``Log``, which provides them.

``table.py`` defines ``Table``, ``all_tables.py`` lists the tables with their options (``options.py``), and ``read.py``
is one pass that produces rows; the other files produce the rows of related tables. Columns are defined in
``kraftlog.schema``. Files are only read through ``kraftlog.read``, and nothing here writes.
"""
