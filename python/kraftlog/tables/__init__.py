"""The rows of each table, and ``Log``, which offers them."""
