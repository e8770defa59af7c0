"""Reading partitions: where to start, how to cut, transactions around a range, records and messages."""
