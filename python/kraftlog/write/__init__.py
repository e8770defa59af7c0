"""Changes of a partition's folder: ``PartitionLog``, the metadata writer, recovery.

``log_end`` finds the end of a log for a writer and changes nothing; ``partition_log`` truncates the log there, appends,
rolls, adopts staged files and closes. All appends go through it: those of the metadata writer (``metadata_writer``,
``streamed_transaction``, ``leadership``) and those of ``kraftlog.log_store``. ``recover`` repairs folders without
opening them for appends.

The caller of ``PartitionLog`` holds the lock of the log directory. Files are changed only through ``kraftlog.disk``;
records are not decoded here.
"""
