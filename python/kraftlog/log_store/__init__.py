"""The embedded transactional log: topics, producers, a transaction coordinator, consumers, in Kafka's own files.

``store`` is the interface. ``transaction_state`` defines transactions as a function without files;
``transaction_coordinator`` writes its states to ``__transaction_state`` and the markers to the partitions, in such an
order that after a crash at any moment each transaction is either decided or undone. ``partition`` is a log with its
producers, over ``kraftlog.write.partition_log``. ``cluster`` keeps topics in ``__cluster_metadata``. ``staged_write``
is the interface for rows that other processes prepare in files (``staging``), as Spark's sink does.

Specification: "Transactions in Apache Kafka"; KIP-98 (transactions), KIP-890 (transaction version 2), KIP-915.
"""
