"""Metadata records with values that are seldom seen, in the JSON of Kafka's own converters."""

from __future__ import annotations

from image_tables import Line

EPOCH, TIMESTAMP = 3, 1_000_000_000_500  # of the batch that they are in
API_KEYS = {
    "RegisterBrokerRecord": 0,
    "TopicRecord": 2,
    "PartitionRecord": 3,
    "ConfigRecord": 4,
    "DelegationTokenRecord": 10,
    "UserScramCredentialRecord": 11,
    "FeatureLevelRecord": 12,
    "ClientQuotaRecord": 14,
    "ProducerIdsRecord": 15,
    "AccessControlEntryRecord": 18,
    "RegisterControllerRecord": 27,
}
TOPICS = {"zeta": "AAAAAAAAAAEAAAAAAAAAAQ", "Alpha.1": "-_-_-_-_-_-_-_-_-_-_-w", "alpha_1": "__________8AAAAAAAAAAA"}
DIRECTORIES = ["PfJ4yQWXWSUQbBo-7kTLFA", "AAAAAAAAAAAAAAAAAAAAAQ", "xM8gvSggT86mnSHG_Obx-g"]
ENTITIES = [
    {"user": "alice"},
    {"user": "CN=an app, O=some (and more)", "client-id": "b\\c"},
    {"ip": "10.0.0.1"},
    {"client-id": "with space"},
    {"client-id": "日本語", "user": "𝄞 and ﬁ"},
]
DOUBLES = [
    *(0.0, 0.5, 1e7, 9999999.0, 1e-3, 9e-4, 1234567.891, 1e22, 123456789012.0),
    *(1.7976931348623157e308, -2.5e-7, 100.0),
]
CONFIGS = [
    (4, "", "message.max.bytes", "2000000"),
    (4, "1", "listener.name.external.ssl.keystore.password", "a secret"),
    (2, "zeta", "cleanup.policy", "compact,delete"),
    (2, "zeta", "an.unknown.setting", ""),
    (8, "1", "org.apache.kafka", "DEBUG"),
    (16, "metrics", "interval.ms", "1000"),
    (32, "group with space", "consumer.session.timeout.ms", "45000"),
]


def records() -> list[Line]:
    """Return ``{"type", "type_id", "version", "data"}`` each."""
    made = [*_features(), *_nodes(), *_topics(), *_configs(), *_quotas(), *_users(), *_acls()]
    made.append(("ProducerIdsRecord", 0, {"brokerId": 1, "brokerEpoch": 7, "nextProducerId": 2**62}))
    return [{"type": name, "type_id": API_KEYS[name], "version": version, "data": data} for name, version, data in made]


Made = list[tuple[str, int, Line]]


def _features() -> Made:
    levels = {"metadata.version": 30, "group.version": 1, "eligible.leader.replicas.version": 1}
    return [("FeatureLevelRecord", 0, {"name": name, "featureLevel": level}) for name, level in levels.items()]


def _nodes() -> Made:
    end_points = [
        {"name": name, "host": host, "port": port, "securityProtocol": protocol}
        for name, host, port, protocol in [
            ("SASL", "h.example", 65535, 2),
            ("EXTERNAL", "::1", 1, 1),
            ("MTLS", "10.0.0.1", 9094, 3),
        ]
    ]
    features = [
        {"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 30},
        {"name": "group.version", "minSupportedVersion": 1, "maxSupportedVersion": 1},
        {"name": "a.version", "minSupportedVersion": 3, "maxSupportedVersion": 32767},
    ]
    broker = {
        "brokerId": 2000000000,
        "isMigratingZkBroker": False,
        "incarnationId": DIRECTORIES[2],
        "brokerEpoch": 2**40,
        "endPoints": end_points,
        "features": features,
        "rack": "rack é",
        "fenced": True,
        "inControlledShutdown": True,
        "logDirs": DIRECTORIES,
        "cordonedLogDirs": DIRECTORIES[:2],
    }
    plain = broker | {"brokerId": 10, "endPoints": end_points[:1], "features": [], "rack": None, "fenced": False}
    controller = {
        "controllerId": 9,
        "incarnationId": DIRECTORIES[0],
        "zkMigrationReady": True,
        "endPoints": end_points,
        "features": features,
    }
    del plain["logDirs"], plain["cordonedLogDirs"]
    return [
        ("RegisterBrokerRecord", 4, broker),
        ("RegisterBrokerRecord", 3, plain),
        ("RegisterControllerRecord", 0, controller),
    ]


def _topics() -> Made:
    made: Made = []
    for name, topic_id in TOPICS.items():
        made.append(("TopicRecord", 0, {"name": name, "topicId": topic_id}))
        for partition in range(12 if name == "zeta" else 1):
            data = {
                "partitionId": partition,
                "topicId": topic_id,
                "replicas": [3, 1, 2],
                "isr": [1],
                "removingReplicas": [2],
                "addingReplicas": [3],
                "leader": -1 if partition % 2 else 1,
                "leaderRecoveryState": partition % 2,
                "leaderEpoch": partition,
                "partitionEpoch": 2**31 - 1,
            }
            if name == "zeta":
                data |= {"directories": DIRECTORIES, "eligibleLeaderReplicas": [2, 3], "lastKnownElr": [1]}
            made.append(("PartitionRecord", 2 if name == "zeta" else 0, data))
    return made


def _configs() -> Made:
    return [
        ("ConfigRecord", 0, {"resourceType": kind, "resourceName": resource, "name": name, "value": value})
        for kind, resource, name, value in CONFIGS
    ]


def _quotas() -> Made:
    made: Made = []
    for number, value in enumerate(DOUBLES):
        entity = [{"entityType": kind, "entityName": name} for kind, name in ENTITIES[number % len(ENTITIES)].items()]
        data = {"entity": entity, "key": f"quota-{number}", "value": value, "remove": False}
        made.append(("ClientQuotaRecord", 0, data))
    return made


def _users() -> Made:
    scram = [
        (name, mechanism, {"salt": "AP8=", "storedKey": "", "serverKey": "c2VydmVy", "iterations": 4096})
        for name, mechanism in [("alice", 1), ("bob with space", 1), ("bøb", 2)]
    ]
    token = {
        "owner": "User:alice",
        "requester": "User:bob",
        "renewers": ["User:carol", "User:dan"],
        "issueTimestamp": 1,
        "maxTimestamp": 3,
        "expirationTimestamp": 2,
        "tokenId": "aToken",
    }
    made: Made = [("UserScramCredentialRecord", 0, {"name": name, "mechanism": m} | data) for name, m, data in scram]
    return [*made, ("DelegationTokenRecord", 0, token)]


def _acls() -> Made:
    return [
        (
            "AccessControlEntryRecord",
            0,
            {
                "id": f"{operation:02d}AAAAAAAAAAAAAAAAAAAA",
                "resourceType": 2 + operation % 6,
                "resourceName": "*" if operation % 2 else "a name",
                "patternType": 3 + operation % 2,
                "principal": "User:CN=x, O=y",
                "host": "*",
                "operation": operation,
                "permissionType": 2 + operation % 2,
            },
        )
        for operation in range(2, 16)
    ]
