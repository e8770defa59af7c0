"""Prints how many bytes of memory a table of one record takes while it is held, one batch decoded for each."""

import json

import pyarrow as pa

import kraftlog
from anonymous_memory import anonymous_memory

TABLES = 500

batch = kraftlog.encode(pa.table({"key": [b"k" * 8], "value": [b"v" * 100]})).to_pybytes()
kraftlog.decode(batch).to_table()
before = anonymous_memory()
held = [kraftlog.decode(batch).to_table() for _ in range(TABLES)]
print(json.dumps({"bytes": (anonymous_memory() - before) / len(held)}))
