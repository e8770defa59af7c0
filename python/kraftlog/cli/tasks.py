"""The commands by task: their modules, and what ``kraftlog --help`` says of them.

It is known without any of the modules, so that help and start are quick.
"""

from __future__ import annotations

from kraftlog.tables.all_tables import TABLES

_TABLE = ("", "")  # the table says where its command is, and what it does

TASKS: dict[str, dict[str, tuple[str, str]]] = {
    "Look": {
        "topics": _TABLE,
        "records": _TABLE,
        "grep": ("grep", "Show the records that hold a text in key, value or headers."),
        "batches": _TABLE,
        "segments": _TABLE,
        "replicas": _TABLE,
        "messages": _TABLE,
        "get-offsets": ("get_offsets", "Show where partitions start and end, and what lies at a time."),
        "stats": ("stats", "Count batches, records and bytes by partition or producer."),
        "schemas": _TABLE,
        "index-entries": _TABLE,
        "sql": ("sql", "Answer questions in SQL over topics and tables."),
        "dump": ("dump", "Print files as kafka-dump-log does."),
    },
    "Check": {
        "verify": _TABLE,
        "audit": _TABLE,
        "report": ("report_page", "Write one HTML page: what is wrong, what to do next, what is there."),
        "health": ("health", "List partitions, brokers and configs that need attention."),
        "downgrade": ("downgrade", "List what an older release could not read; write its metadata snapshot."),
    },
    "Transactions": {
        "transactions": _TABLE,
        "partition-transactions": _TABLE,
        "hanging": _TABLE,
        "producers": _TABLE,
        "transactional-ids": _TABLE,
        "metadata-transactions": _TABLE,
    },
    "Cluster": {
        "groups": _TABLE,
        "offsets": _TABLE,
        "lag": ("lag", "Show how far groups are behind the ends of the logs."),
        "image": ("image", "Show topics, brokers and configs at an offset or time."),
        "diff": ("image", "Show what changed between two offsets, or differs between two clusters."),
        "changes": _TABLE,
        "shell": ("shell", "Look around in the metadata image as in a file system."),
    },
    "Convert": {
        "export": ("export", "Write records as Parquet and others, a file for each partition or day."),
        "extract": ("extract", "Copy partitions, or stretches of them, to a log directory of their own."),
        "backup": ("backup", "Back up the log directories of a cluster, and look into backups."),
        "restore": ("restore", "Write log directories that a new cluster boots, as another one was at a cut."),
        "replay": ("replay", "Produce the records of partitions into a live broker."),
        "serve": ("serve", "Let Kafka's clients read a log, without a broker."),
        "broker": ("broker", "Be one broker for tests and edges, over a log directory."),
        "pack": ("pack", "Make a log file of JSON Lines or Parquet."),
    },
    "Write": {
        "store": ("store", "Write and read a log directory as a broker of one node does."),
    },
    "Repair": {
        "recover": ("recover", "Cut torn tails and rebuild index files, as a broker does when it starts."),
        "rescue": ("rescue", "Write new controllers from one metadata log that is left; brokers keep their data."),
    },
    "Learn": {
        "sample": ("sample", "Write sample logs that a real Kafka made, to try things with."),
        "demo": ("demo", "Show what a few commands find in the sample logs."),
        "man": ("man", "Print the manual page."),
    },
}

for _table in TABLES.values():
    TASKS[_table.task][_table.command] = (_table.module, _table.summary)

RARE = ("index-entries", "producers", "transactional-ids", "metadata-transactions", "man")
"""Commands that ``kraftlog --help --all`` lists, and ``kraftlog --help`` does not."""

OTHER_NAMES = {
    "ls": "topics, or segments for files",
    "list": "topics",
    "info": "topics, or report for all of it",
    "head": "records -c 10",
    "tail": "records --last 10, or with --follow",
    "cat": "records",
    "search": "grep",
    "find": "grep",
    "consume": "records",
    "describe": "topics, or image",
    "errors": "verify",
    "downgrade-check": "downgrade",
    "timeline": "changes",
    "metadata-changes": "changes --fields",
    "diff --steps": "changes --fields",
}
"""Names of commands and options in other programs and in earlier releases, and the commands to use instead."""

MODULES = {name: module for commands in TASKS.values() for name, (module, _) in commands.items()}
WITHOUT_ARROW = ("sample", "broker")  # modules that start without pyarrow
