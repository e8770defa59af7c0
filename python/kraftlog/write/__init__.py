"""Changes of a partition's folder: ``PartitionLog``, the metadata writer, recovery.

``log_end`` reads what a writer has to know of a log and changes nothing; ``partition_log`` cuts off what lies behind
that end, appends, rolls, adopts staged files and closes. All appends go through it: those of the metadata writer
(``metadata_writer``, ``streamed_transaction``, ``leadership``) and those of ``kraftlog.log_store``. ``recover`` repairs
folders of which nothing is to be written.

The caller of ``PartitionLog`` holds the lock of the log directory. Files are changed through ``kraftlog.disk`` alone;
records are not decoded here.
"""
