"""State of the coordinators: offsets, groups and transactional ids, folded from typed records.

Also which releases can read the records of internal topics (``releases``, ``downgrade_check``). Columns in, columns
out: nothing here opens a file or decodes a message.
"""
