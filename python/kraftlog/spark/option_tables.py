"""The options of the format ``kraftlog``: names, defaults and meaning. What Spark's Kafka source has keeps its name.

Parsers take the names from here, and the documentation has a table of each group.
"""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """One option. ``default`` is the text that means the same as leaving it out; None where there is none."""

    name: str
    default: str | None
    meaning: str


READING = (
    Option(
        "path", None, "A file, folder, log directory or glob that all executors see, or a URI; `.load(path)` sets it."
    ),
    Option("paths", None, "Several: JSON, or commas between them; `.load([...])` sets it."),
    Option("storageOptions", None, 'Of the file system of URIs, as JSON: `{"region": "eu-central-1"}`.'),
    Option("remoteTier", None, "Tiered storage of the brokers: a folder, or a URI; with `path`, or alone."),
    Option("tierKeys", None, 'PEM files on the driver for an encrypted one, as JSON: `{"k1": "/keys/k1.pem"}`.'),
    Option("table", "records", "Which table."),
    Option("type", None, "Messages of one type as columns, such as `PartitionRecord`."),
    Option(
        "columns", None, "Names with commas between them; by default those of Spark's Kafka source, or of the table."
    ),
    Option("includeHeaders", "false", "Whether the default columns of records have `headers`."),
    Option("subscribe", None, "Topics, with commas between them. By default all files are read."),
    Option("subscribePattern", None, "Topics, by a regular expression; Kafka's internal topics are not among them."),
    Option("assign", None, 'Partitions: `{"orders": [0, 1]}`.'),
    Option("topicIds", None, "Of topics with the same name those with these ids, with commas between them."),
    Option("clusterId", None, "Of directories of several clusters those of this one."),
    Option(
        "startingOffsets",
        "earliest",
        'Where reading starts: `earliest`, a number, or `{"orders": {"0": 23, "1": -2}}` (-2 is earliest, -1 latest).'
        " Of a stream: of its first run, by default `latest`.",
    ),
    Option(
        "startingTimestamp", None, "Start at the first record of each partition with this timestamp or a later one."
    ),
    Option("startingOffsetsByTimestamp", None, 'The same by partition: `{"orders": {"0": 1767225600000}}`.'),
    Option("startingOffsetsByTimestampStrategy", "error", "`latest`: start at the end where no record is as late."),
    Option("endingOffsets", "latest", "Where a batch ends, in the same forms. A number behind the end means the end."),
    Option("endingTimestamp", None, "End before the first record with this timestamp or a later one."),
    Option("endingOffsetsByTimestamp", None, "The same by partition."),
    Option("startTimestamp", None, "Only records of this timestamp or a later one: milliseconds, or RFC 3339."),
    Option("endTimestamp", None, "Only records before this timestamp."),
    Option("isolationLevel", "read_uncommitted", "Or `read_committed`. `kafka.isolation.level` is the same."),
    Option(
        "filterPushdown",
        "false",
        "Whether filters on topic, partition, offset and timestamp narrow the plan, where Spark hands them down"
        " (`spark.sql.python.filterPushdown.enabled`). Spark keeps the narrowed plan with the frame and uses it for"
        " queries without filters too: set it on frames that serve one query.",
    ),
    Option(
        "time",
        "latest",
        "Of `partition_offsets`: `earliest`, `latest`, `max-timestamp`, milliseconds or RFC 3339: the first record then"
        " or later.",
    ),
    Option("includeControl", "false", "Whether there are rows for the records of control batches."),
    Option("includeDeleted", "false", "Whether to read what lies before the log start offset."),
    Option(
        "heal",
        "true",
        "Whether what the chosen replica of a partition lacks, or has damaged, is read from others that agree with it.",
    ),
    Option(
        "committedOnly",
        "false",
        "Whether each partition of records and messages ends at the high watermark that the files prove; not of"
        " streams, which have `highWatermark`.",
    ),
    Option("includeImage", "false", "Of `metadata_changes`: whether the first rows are what the log's snapshot holds."),
    Option("salvage", "false", "Whether to search for batches behind damage that leaves no header to go on with."),
    Option("showSecrets", "false", "Of messages: whether passwords and SCRAM credentials are shown."),
    Option("checkCrc", "true", "Whether checksums are compared; of the table `batches` by default not."),
    Option("maxDecompressedBytes", "268435456", "Most bytes that one batch may take after decompression."),
    Option("definitions", None, "A folder of Kafka's JSON definitions of messages, in place of those of this package."),
    Option("valueFormat", None, "What values are: `avro`, `json`, `string`, `long` ...; by the schema of planning."),
    Option("keyFormat", None, "The same of keys."),
    Option(
        "valueSchema",
        None,
        "The schema to read values by: an id, a subject, `orders-value:1`, or a file; else the newest.",
    ),
    Option("keySchema", None, "The same of keys."),
    Option("valueFraming", None, "What stands before values: `confluent` (the default), `apicurio` or `none`."),
    Option("keyFraming", None, "The same of keys."),
    Option("jsonSample", None, "How many values of each partition say the type of JSON, or `all`; else 2,000."),
    Option("schemas", None, "A folder of schemas, in place of the topic `_schemas` of the log directory."),
    Option(
        "redact",
        None,
        "What is taken out of records, as JSON or with commas between them: `value.card=mask`, `key=hash`,"
        " `header.user=null`. Filters see what is left.",
    ),
    Option(
        "redactKey",
        None,
        "A file on the driver with the key of `hash`; by default its environment variable `KRAFTLOG_REDACT_KEY`.",
    ),
    Option("onError", "fail", "What damage does: `fail`, `skip`, or `quarantine`."),
    Option("quarantinePath", None, "A folder for `quarantine`: the table `errors` of this read, as Parquet."),
    Option(
        "failOnDataLoss", "true", "Whether offsets that are not in the log fail the job; they are passed over if not."
    ),
    Option(
        "rangeBytes", None, "Bytes of log of one task, such as `64m`. By default 128m; of 512 segments or more, one."
    ),
    Option("minPartitions", "1", "How many tasks there are at least."),
)
STREAMS = (
    Option("maxOffsetsPerTrigger", None, "Most offsets of a micro-batch (PySpark 4.2 or later)."),
    Option("minOffsetsPerTrigger", None, "How many offsets a micro-batch waits for (PySpark 4.2 or later)."),
    Option("maxTriggerDelay", "15m", "How long it waits for them."),
    Option(
        "highWatermark",
        "false",
        "Whether to stop where the broker last said that all is replicated, in its checkpoint.",
    ),
)
# They say how a client talks to a broker, or how many records a task takes, which is a matter of bytes here
# (``rangeBytes``). All options of ``kafka.`` but the isolation level have no effect, too.
WITHOUT_EFFECT = (
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "maxRecordsPerPartition",
)
SINK = (
    Option("path", None, "A log directory that driver and executors share; `.save(path)` and `.start(path)` set it."),
    Option("topic", None, "The topic of all rows; by default the column `topic` says it."),
    Option("partitions", None, 'How many partitions a new topic gets, by default 1: a number, or `{"orders": 6}`.'),
    Option("compression", "none", "`none`, `gzip`, `snappy`, `lz4` or `zstd`."),
    Option("compressionLevel", None, "Of gzip, lz4 or zstd, as Kafka takes it."),
    Option("batchSize", "1048576", "Most bytes of a record batch before compression."),
    Option("segmentBytes", "1073741824", "Most bytes of a segment."),
    Option("overwriteTopics", "false", "Allows mode `overwrite` (of a stream: `complete`), which removes all records."),
    Option("transactionalId", None, "With `batchId`: names a write of a job that happens once, however often it runs."),
    Option("batchId", None, "The number of that write. Spark numbers those of streams."),
    Option("checkpointLocation", None, "Of a stream; the checkpoint is what makes each row be written once."),
)
