"""The options of the format ``kraftlog``: names, defaults and meaning. Options of Spark's Kafka source keep its names.

Parsers take the names from here, and the documentation has a table of each group.
"""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """One option. ``default`` is the text with the same meaning as an absent option; None if there is no such text."""

    name: str
    default: str | None
    meaning: str


READING = (
    Option(
        "path", None, "A file, folder, log directory or glob that all executors see, or a URI; `.load(path)` sets it."
    ),
    Option("paths", None, "Several paths: JSON, or comma-separated; `.load([...])` sets it."),
    Option("storageOptions", None, 'Arguments of the file system for URIs, as JSON: `{"region": "eu-central-1"}`.'),
    Option("remoteTier", None, "Tiered storage of the brokers: a folder or URI; `path` is optional then."),
    Option("tierKeys", None, 'PEM files on the driver that decrypt the tier, as JSON: `{"k1": "/keys/k1.pem"}`.'),
    Option("table", "records", "Which table."),
    Option("type", None, "Messages of one type as columns, such as `PartitionRecord`."),
    Option("columns", None, "Comma-separated names; by default the columns of Spark's Kafka source, or of the table."),
    Option("includeHeaders", "false", "Whether the default columns of records have `headers`."),
    Option("subscribe", None, "Comma-separated topics. By default all files are read."),
    Option("subscribePattern", None, "A regular expression for topics; it never selects Kafka's internal topics."),
    Option("assign", None, 'Partitions: `{"orders": [0, 1]}`.'),
    Option("topicIds", None, "Comma-separated topic ids: chooses among topics with the same name."),
    Option("clusterId", None, "A cluster id: chooses among directories of several clusters."),
    Option(
        "cut",
        None,
        "The log ends where no transaction is torn: `end`, `at-or-before:TIME` or `at-or-after:TIME`; not for streams.",
    ),
    Option(
        "startingOffsets",
        "earliest",
        'Where reading starts: `earliest`, a number, or `{"orders": {"0": 23, "1": -2}}` (-2 is earliest, -1 latest).'
        " For a stream it applies to the first run, by default `latest`.",
    ),
    Option(
        "startingTimestamp", None, "Start at the first record of each partition with this timestamp or a later one."
    ),
    Option("startingOffsetsByTimestamp", None, 'Timestamps by partition: `{"orders": {"0": 1767225600000}}`.'),
    Option(
        "startingOffsetsByTimestampStrategy",
        "error",
        "`latest`: start at the end of a partition where no record has that timestamp or a later one.",
    ),
    Option(
        "endingOffsets", "latest", "Where a batch query ends, in the same forms. A number beyond the end means the end."
    ),
    Option("endingTimestamp", None, "End before the first record with this timestamp or a later one."),
    Option("endingOffsetsByTimestamp", None, "Timestamps by partition."),
    Option("startTimestamp", None, "Only records with this timestamp or a later one: milliseconds, or RFC 3339."),
    Option("endTimestamp", None, "Only records before this timestamp."),
    Option(
        "isolationLevel",
        "read_uncommitted",
        "The other value is `read_committed`. `kafka.isolation.level` is an alias.",
    ),
    Option(
        "time",
        "latest",
        "Of `partition_offsets`: `earliest`, `latest`, `max-timestamp`, milliseconds or RFC 3339: the first record then"
        " or later.",
    ),
    Option("includeControl", "false", "Whether there are rows for the records of control batches."),
    Option("includeDeleted", "false", "Whether to read records before the log start offset."),
    Option(
        "heal",
        "true",
        "Whether stretches that the chosen replica lacks or has damaged are read from replicas that agree with it.",
    ),
    Option(
        "includeImage", "false", "For `metadata_changes`: whether the first rows are the content of the log's snapshot."
    ),
    Option("salvage", "false", "Whether to search for the next batch after damage that destroys a header."),
    Option(
        "against",
        None,
        "For `findings`: paths of another cluster, as in `paths`; the rows are what it lacks or has otherwise.",
    ),
    Option("showSecrets", "false", "For messages: whether to show passwords and SCRAM credentials."),
    Option("checkCrc", "true", "Whether to verify checksums; the default for the table `batches` is `false`."),
    Option("maxDecompressedBytes", "268435456", "Maximum bytes of one batch after decompression."),
    Option("definitions", None, "A folder of Kafka's JSON definitions of messages, instead of those in this package."),
    Option(
        "valueFormat", None, "Format of values: `avro`, `json`, `string`, `long` ...; planning settles their schema."
    ),
    Option(
        "committedOnly",
        "false",
        "Whether each partition of records and messages ends at the high watermark that the files prove; not of"
        " streams, which have `highWatermark`.",
    ),
    Option("keyFormat", None, "The same of keys."),
    Option(
        "valueSchema",
        None,
        "The schema to read values by: an id, a subject, `orders-value:1`, or a file; else the newest.",
    ),
    Option("keySchema", None, "The same of keys."),
    Option("valueFraming", None, "Framing before each value: `confluent` (the default), `apicurio` or `none`."),
    Option("keyFraming", None, "The same of keys."),
    Option("jsonSample", None, "How many values of each partition say the type of JSON, or `all`; else 2,000."),
    Option("schemas", None, "A folder of schemas, in place of the topic `_schemas` of the log directory."),
    Option(
        "redact",
        None,
        "Fields to remove from records, as JSON or comma-separated: `value.card=mask`, `key=hash`,"
        " `header.user=null`. Filters see the redacted records.",
    ),
    Option(
        "redactKey",
        None,
        "A file on the driver with the HMAC key for `hash`; by default its environment variable `KRAFTLOG_REDACT_KEY`.",
    ),
    Option("onError", "fail", "How to handle damage: `fail`, `skip`, or `quarantine`."),
    Option("quarantinePath", None, "A folder for `quarantine`: the table `errors` of this read, as Parquet."),
    Option(
        "failOnDataLoss", "true", "Whether offsets that are no longer in the log fail the job; otherwise it skips them."
    ),
    Option(
        "rangeBytes", None, "Bytes of log per task, such as `64m`. Default: 128m; of 512 segments or more one segment."
    ),
    Option("minPartitions", "1", "Minimum number of tasks."),
)
STREAMS = (
    Option("maxOffsetsPerTrigger", None, "Maximum offsets of a micro-batch (PySpark 4.2 or later)."),
    Option("minOffsetsPerTrigger", None, "Minimum offsets of a micro-batch: it waits for them (PySpark 4.2 or later)."),
    Option("maxTriggerDelay", "15m", "Maximum wait for `minOffsetsPerTrigger`."),
    Option(
        "highWatermark",
        "auto",
        "Whether to stop at the high watermarks in `replication-offset-checkpoint`: `auto` where it has one, `true`"
        " everywhere (a partition without one waits), or `false`.",
    ),
)
# They configure a client of a broker, or the records of a task, which ``rangeBytes`` limits here. Options with the
# prefix ``kafka.`` have no effect either, except for the isolation level.
WITHOUT_EFFECT = (
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "maxRecordsPerPartition",
)
SINK = (
    Option(
        "path",
        None,
        "A log directory that driver and executors share; with `stagingLocation` only the driver needs it."
        " `.save(path)` and `.start(path)` set it.",
    ),
    Option(
        "stagingLocation",
        None,
        "Where tasks send their files for the driver to fetch: a URI such as `s3://bucket/staging`, or a folder that"
        " driver and executors share.",
    ),
    Option("storageOptions", None, "Arguments of the file system of `stagingLocation`, as JSON."),
    Option("topic", None, "The topic of all rows; by default the column `topic`."),
    Option("partitions", None, 'Number of partitions of a new topic, by default 1: a number, or `{"orders": 6}`.'),
    Option("compression", "none", "`none`, `gzip`, `snappy`, `lz4` or `zstd`."),
    Option("compressionLevel", None, "Level for gzip, lz4 or zstd, in Kafka's ranges."),
    Option("batchSize", "1048576", "Maximum bytes of a record batch before compression."),
    Option("segmentBytes", "1073741824", "Maximum bytes of a segment."),
    Option("overwriteTopics", "false", "Allows mode `overwrite` (`complete` for a stream), which removes all records."),
    Option(
        "transactionalId", None, "With `batchId`: identifies a write that happens once, however often the job runs."
    ),
    Option("batchId", None, "The number of that write. For streams Spark numbers them."),
    Option("checkpointLocation", None, "For a stream; with the checkpoint each row is written once."),
)
