"""The list of tables. All interfaces use it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kraftlog.tables.options import (
    BatchOptions,
    ChangeOptions,
    ErrorOptions,
    FindingOptions,
    FoldOptions,
    LineOptions,
    MessageOptions,
    MetadataTransactionOptions,
    OffsetAtTimeOptions,
    OffsetBounds,
    ProducerOptions,
    RecordOptions,
    ReplicaOptions,
    TransactionOptions,
)
from kraftlog.tables.table import Narrows, Replicas, Table, TaskCut
from kraftlog.topics import CONSUMER_OFFSETS, SCHEMAS, TRANSACTION_STATE

if TYPE_CHECKING:
    from kraftlog.messages.catalog import Catalog

TABLES = {
    table.name: table
    for table in (
        Table(
            name="topic_summary",
            columns="TOPIC_SUMMARY",
            rows="tables.topic_rows.topic_rows",
            options=LineOptions,
            cut=TaskCut.WHOLE,
            task="Look",
            command="topics",
            summary="Show what topics hold: partitions, records, bytes, times, formats and health.",
            example="kraftlog topics sample/broker",
        ),
        Table(
            name="segments",
            columns="SEGMENTS",
            rows="tables.file_tables.segment_rows",
            options=OffsetBounds,
            cut=TaskCut.SEGMENTS,
            replicas=Replicas.EACH,
            narrows=Narrows.PARTITIONS,
            is_of_files=True,
            shows_unread=True,
            task="Look",
            command="segments",
            summary="Show what each segment file holds, and whether it is whole.",
            example="kraftlog segments sample/broker",
        ),
        Table(
            name="batches",
            columns="BATCHES",
            rows="tables.file_tables.batch_rows",
            options=BatchOptions,
            cut=TaskCut.SEGMENTS,
            replicas=Replicas.EACH,
            narrows=Narrows.PARTITIONS,
            is_of_files=True,
            defaults={"check_crc": False},
            task="Look",
            command="batches",
            summary="Show the header of each record batch.",
            example="kraftlog batches sample/codecs/codec-mixed-0 --columns position,base_offset,compression",
        ),
        Table(
            name="replicas",
            columns="REPLICAS",
            rows="tables.replica_table.replica_rows",
            options=ReplicaOptions,
            cut=TaskCut.REPLICAS,
            replicas=Replicas.EACH,
            narrows=Narrows.PARTITIONS,
            is_of_files=True,
            task="Look",
            command="replicas",
            summary="Compare what log directories hold of the same partitions.",
            example="kraftlog replicas sample/broker --topic orders --columns partition,directory,end_offset,damaged",
        ),
        Table(
            name="records",
            columns="RECORDS",
            rows="tables.record_rows.record_rows",
            options=RecordOptions,
            cut=TaskCut.RANGES,
            narrows=Narrows.RECORDS,
            task="Look",
            command="records",
            summary="Show records: key, value, offset, timestamp and headers.",
            example="kraftlog records sample/codecs -t codec-lz4 -c 3\n"
            "  kraftlog records sample/broker -t orders -p 0 -o -5 -f '%o %T %k %S\\n'",
        ),
        Table(
            name="messages",
            columns="MESSAGES",
            rows="tables.message_tables.message_rows",
            options=MessageOptions,
            cut=TaskCut.PARTITIONS,
            narrows=Narrows.RECORDS,
            task="Look",
            command="messages",
            summary="Show records of internal topics and of the metadata log, with typed fields.",
            example="kraftlog messages sample/metadata --columns offset,type,value --limit 3",
        ),
        Table(
            name="transactions",
            columns="TRANSACTIONS",
            rows="tables.transactions.transaction_rows",
            options=LineOptions,
            cut=TaskCut.WHOLE,
            replicas=Replicas.CHOSEN_BY_TABLE,
            choices={"states": "state"},
            task="Transactions",
            command="transactions",
            summary="Show what became of each transaction of producers, over all its partitions.",
            example="kraftlog transactions sample/broker --columns transactional_id,producer_id,producer_epoch,state",
        ),
        Table(
            name="partition_transactions",
            columns="PARTITION_TRANSACTIONS",
            rows="tables.transaction_tables.partition_transaction_rows",
            options=TransactionOptions,
            cut=TaskCut.PARTITIONS,
            narrows=Narrows.PARTITIONS,
            task="Transactions",
            command="partition-transactions",
            summary="Show what became of each transaction of producers, in each partition.",
            example="kraftlog partition-transactions sample/broker --topic orders",
        ),
        Table(
            name="metadata_transactions",
            columns="METADATA_TRANSACTIONS",
            rows="tables.transaction_tables.metadata_transaction_rows",
            options=MetadataTransactionOptions,
            cut=TaskCut.PARTITIONS,
            narrows=Narrows.PARTITIONS,
            is_of_files=True,
            task="Transactions",
            command="metadata-transactions",
            summary="Show the transactions of the metadata log.",
            example="kraftlog metadata-transactions sample/metadata",
        ),
        Table(
            name="metadata_changes",
            columns="METADATA_CHANGES",
            rows="tables.change_tables.metadata_change_rows",
            options=ChangeOptions,
            cut=TaskCut.PARTITIONS,
            is_of_files=True,
            is_of_metadata=True,
            task="Cluster",
            command="changes",
            summary="Show what changed in a cluster: who lost what, and when.",
            example="kraftlog changes sample/metadata --fields --topic meta-1 --format table",
            module="changes",
        ),
        Table(
            name="producers",
            columns="PRODUCERS",
            rows="tables.producer_tables.producer_rows",
            options=ProducerOptions,
            cut=TaskCut.PARTITIONS,
            narrows=Narrows.PARTITIONS,
            task="Transactions",
            command="producers",
            summary="Show the state of each producer.",
            example="kraftlog producers sample/broker --topic orders --partition 0",
        ),
        Table(
            name="hanging_transactions",
            columns="HANGING_TRANSACTIONS",
            rows="tables.hanging.hanging_rows",
            options=LineOptions,
            cut=TaskCut.WHOLE,
            replicas=Replicas.CHOSEN_BY_TABLE,
            task="Transactions",
            command="hanging",
            summary="List open transactions that no coordinator will end, with the command that aborts them.",
            example="kraftlog hanging sample/hanging",
        ),
        Table(
            name="partition_offsets",
            columns="PARTITION_OFFSETS",
            rows="tables.partition_offsets.partition_offset_rows",
            options=OffsetAtTimeOptions,
            cut=TaskCut.WHOLE,
            replicas=Replicas.CHOSEN_BY_TABLE,
            narrows=Narrows.PARTITIONS,
            defaults={"heal": False},
            task="Look",
            command="get-offsets",
            summary="Show where partitions start and end, and what lies at a time.",
            example="kraftlog get-offsets sample/broker --topic-partitions orders:0-2",
            module="get_offsets",
        ),
        Table(
            name="waits",
            columns="WAITS",
            rows="tables.waits.wait_rows",
            options=LineOptions,
            cut=TaskCut.WHOLE,
            replicas=Replicas.CHOSEN_BY_TABLE,
            choices={"groups": "group"},
            task="Transactions",
            command="why",
            summary="Say why consumers wait or lag, in a sentence for each partition.",
            example="kraftlog why sample/broker --topic orders",
        ),
        Table(
            name="last_stable_offsets",
            columns="LAST_STABLE_OFFSETS",
            rows="tables.partition_offsets.last_stable_offset_rows",
            options=LineOptions,
            cut=TaskCut.PARTITIONS,
            narrows=Narrows.PARTITIONS,
            task="Transactions",
            command="last-stable-offsets",
            summary="Show where a read_committed consumer stops in each partition.",
            example="kraftlog last-stable-offsets sample/broker --topic orders",
        ),
        Table(
            name="offsets",
            columns="OFFSETS",
            rows="tables.coordinator_tables.offset_rows",
            options=FoldOptions,
            cut=TaskCut.WHOLE,
            topic=CONSUMER_OFFSETS,
            task="Cluster",
            command="offsets",
            summary="Show the offsets that groups have committed.",
            example="kraftlog offsets sample/groups --columns group,topic,partition,offset,state",
        ),
        Table(
            name="groups",
            columns="GROUPS",
            rows="tables.coordinator_tables.group_rows",
            options=FoldOptions,
            cut=TaskCut.WHOLE,
            topic=CONSUMER_OFFSETS,
            key=("group",),
            task="Cluster",
            command="groups",
            summary="Show groups and their members.",
            example="kraftlog groups sample/groups --columns group,group_type,state,protocol",
        ),
        Table(
            name="lag",
            columns="LAG",
            rows="tables.lag.lag_rows",
            options=LineOptions,
            cut=TaskCut.WHOLE,
            replicas=Replicas.CHOSEN_BY_TABLE,
            topic=CONSUMER_OFFSETS,
            task="Cluster",
            command="lag",
            summary="Show how far groups are behind the ends of the logs.",
            example="kraftlog lag sample/groups --group grp-migrated",
            module="lag",
        ),
        Table(
            name="transactional_ids",
            columns="TRANSACTIONAL_IDS",
            rows="tables.coordinator_tables.transactional_id_rows",
            options=FoldOptions,
            cut=TaskCut.WHOLE,
            topic=TRANSACTION_STATE,
            key=("transactional_id",),
            task="Transactions",
            command="transactional-ids",
            summary="Show transactional ids as their coordinators know them.",
            example="kraftlog transactional-ids sample/broker",
        ),
        Table(
            name="schemas",
            columns="SCHEMAS",
            rows="tables.schema_table.schema_rows",
            options=FoldOptions,
            cut=TaskCut.WHOLE,
            topic=SCHEMAS,
            task="Look",
            command="schemas",
            summary="Show the schemas of a registry, from its topic _schemas.",
            example="kraftlog schemas backup --columns id,subject,version,type",
        ),
        Table(
            name="index_entries",
            columns="INDEX_ENTRIES",
            rows="tables.file_tables.index_rows",
            options=OffsetBounds,
            cut=TaskCut.SEGMENTS,
            replicas=Replicas.EACH,
            narrows=Narrows.PARTITIONS,
            is_of_files=True,
            task="Look",
            command="index-entries",
            summary="Show the entries of index files.",
            example="kraftlog index-entries sample/codecs/codec-lz4-0",
        ),
        Table(
            name="errors",
            columns="ERRORS",
            rows="tables.error_rows.error_rows",
            options=ErrorOptions,
            cut=TaskCut.CHECKS,
            replicas=Replicas.EACH,
            narrows=Narrows.PARTITIONS,
            is_of_files=True,
            is_of_faults=True,
            shows_unread=True,
            task="Check",
            command="verify",
            summary="Check records, offsets, index files and transactions.",
            example="kraftlog verify sample/broker",
            module="verify",
        ),
        Table(
            name="findings",
            columns="FINDINGS",
            rows="audit.rows.finding_rows",
            options=FindingOptions,
            cut=TaskCut.WHOLE,
            replicas=Replicas.COMPARED,
            task="Check",
            command="audit",
            summary="Find what the files of a cluster contradict: replicas, transactions, offsets, configuration.",
            example="kraftlog audit sample/broker",
            module="audit",
        ),
    )
}


def table_named(name: str, catalog: Catalog | None = None) -> Table:
    """Return a table, or the table of a message type such as ``PartitionRecord``.

    Parameters
    ----------
    name : str
    catalog : Catalog, optional
        Message definitions; by default the built-in ones.

    Raises
    ------
    ValueError
        When there is no table or message type of this name.

    Examples
    --------
    >>> from kraftlog.tables.all_tables import table_named
    >>> [*table_named("TopicRecord").schema.shown][9:11]
    ['name', 'topic_id']
    """
    if name in TABLES:
        return TABLES[name]
    from kraftlog.messages.catalog import BUILT_IN
    from kraftlog.tables.message_tables import type_schema

    columns = type_schema(name, BUILT_IN if catalog is None else catalog)
    if columns is None:
        raise ValueError(f"table {name!r} is not one of {', '.join(TABLES)}, nor a type of message")
    return replace(TABLES["messages"], name=name, columns=columns, rows="tables.message_tables.type_rows")
