"""Random metadata records of all types, illegal ones included, over few names and ids, so that they meet."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from image_rows import Record, record

UUIDS = [bytes(15) + bytes([last]) for last in range(4)] + [b"\xff" * 16, b"\x01" + bytes(15)]
NAMES = ["a", "b", "metadata.version", "kraft.version"]

few = st.integers(0, 3)
epochs = st.integers(0, 1)
names = st.sampled_from(NAMES)
topics = st.sampled_from(["a", "b", "c", ""])
uuids = st.sampled_from(UUIDS)
topic_ids = st.sampled_from(UUIDS[:3])
partition_ids = st.sampled_from([0, 0, 0, 1, 1, 2, 9, 70, 2**31 - 1, -1])
ids = st.lists(few, max_size=4) | st.lists(few, min_size=8, max_size=9)
replicas = st.lists(few, min_size=1, max_size=3)
dirs = st.lists(uuids, max_size=3)


def maybe(some: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | some


def fields(name: str, /, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    return st.fixed_dictionaries(given).map(lambda values: (name, record(name, **values)))


@st.composite
def partitions(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    some = draw(replicas)
    right = st.lists(uuids, min_size=len(some), max_size=len(some))
    return draw(
        fields(
            "PartitionRecord",
            partition_id=partition_ids,
            topic_id=topic_ids,
            replicas=st.just(some),
            isr=ids,
            removing_replicas=ids,
            adding_replicas=ids,
            leader=st.integers(-1, 3),
            leader_recovery_state=st.sampled_from([0, 0, 0, 1, 2]),
            leader_epoch=few,
            partition_epoch=few,
            directories=st.just([]) | right | dirs,
            eligible_leader_replicas=maybe(ids),
            last_known_elr=maybe(ids),
        )
    )


features = st.lists(
    st.fixed_dictionaries(
        {
            "name": names,
            "min_supported_version": few,
            "max_supported_version": few,
            "unknown_tagged_fields": st.none(),
        }
    ),
    max_size=2,
)
end_points = st.lists(
    st.fixed_dictionaries(
        {
            "name": names,
            "host": names,
            "port": few,
            "security_protocol": few,
            "unknown_tagged_fields": st.none(),
        }
    ),
    max_size=2,
)
entities = st.lists(
    st.fixed_dictionaries(
        {
            "entity_type": st.sampled_from(["user", "client-id", "ip"]),
            "entity_name": maybe(st.sampled_from(["", "alice", "b\u00fcb"])),
            "unknown_tagged_fields": st.none(),
        }
    ),
    max_size=3,
    unique_by=lambda entity: entity["entity_type"],
)
about_topics = st.one_of(
    fields("TopicRecord", name=topics, topic_id=topic_ids),
    fields("TopicRecord", name=topics, topic_id=topic_ids),
    fields("RemoveTopicRecord", topic_id=topic_ids),
    partitions(),
    partitions(),
    fields(
        "PartitionChangeRecord",
        partition_id=partition_ids,
        topic_id=topic_ids,
        isr=maybe(ids),
        leader=st.integers(-2, 3),
        replicas=maybe(replicas),
        removing_replicas=maybe(ids),
        adding_replicas=maybe(ids),
        leader_recovery_state=st.sampled_from([-1, -1, 0, 1, 2]),
        directories=maybe(dirs),
        eligible_leader_replicas=maybe(ids),
        last_known_elr=maybe(ids),
    ),
    fields("ClearElrRecord", topic_name=topics),
    fields(
        "ConfigRecord",
        resource_type=st.sampled_from([2, 2, 4]),
        resource_name=topics,
        name=names,
        value=maybe(names),
    ),
)
about_brokers = st.one_of(
    fields(
        "RegisterBrokerRecord",
        broker_id=few,
        incarnation_id=uuids,
        broker_epoch=epochs,
        end_points=end_points,
        features=features,
        rack=maybe(names),
        fenced=st.booleans(),
        in_controlled_shutdown=st.booleans(),
        log_dirs=dirs,
        cordoned_log_dirs=maybe(dirs),
    ),
    fields("UnregisterBrokerRecord", broker_id=few, broker_epoch=epochs),
    fields("FenceBrokerRecord", id=few, epoch=epochs),
    fields("UnfenceBrokerRecord", id=few, epoch=epochs),
    fields(
        "BrokerRegistrationChangeRecord",
        broker_id=few,
        broker_epoch=epochs,
        fenced=st.integers(-2, 2),
        in_controlled_shutdown=st.integers(-1, 2),
        log_dirs=dirs,
        cordoned_log_dirs=maybe(dirs),
    ),
)
about_others = st.one_of(
    fields("FeatureLevelRecord", name=names, feature_level=st.integers(0, 2)),
    fields("RegisterControllerRecord", controller_id=few, end_points=end_points, features=features),
    fields("UnregisterControllerRecord", controller_id=few),
    fields(
        "ClientQuotaRecord",
        entity=entities,
        key=names,
        value=st.floats(0, 9),
        remove=st.booleans(),
    ),
    fields("ProducerIdsRecord", broker_id=few, broker_epoch=few, next_producer_id=st.integers(-1, 9)),
    fields("AccessControlEntryRecord", id=uuids, principal=names),
    fields("RemoveAccessControlEntryRecord", id=uuids),
    fields("UserScramCredentialRecord", name=names, mechanism=few, salt=st.binary(max_size=2)),
    fields("RemoveUserScramCredentialRecord", name=names, mechanism=few),
    fields("DelegationTokenRecord", token_id=names, owner=names, renewers=st.lists(names, max_size=2)),
    fields("RemoveDelegationTokenRecord", token_id=names),
    fields("NoOpRecord"),
    fields("ZkMigrationStateRecord", zk_migration_state=few),
    fields("BeginTransactionRecord", name=maybe(names)),
    fields("EndTransactionRecord"),
    fields("AbortTransactionRecord", reason=maybe(names)),
)


def logs(*kinds: st.SearchStrategy[tuple[str, dict[str, Any]]]) -> st.SearchStrategy[list[Record]]:
    def some(count: int) -> st.SearchStrategy[list[tuple[str, dict[str, Any]]]]:
        return st.lists(st.one_of(*kinds), min_size=count, max_size=count)

    rows = st.integers(0, 60).flatmap(some)
    return rows.map(lambda rows: [(offset, name, values) for offset, (name, values) in enumerate(rows, 100)])
