"""A cluster as Kafka's commands, as resources of Strimzi, and as resources of Terraform."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import hcl2
import jsonschema
import pytest
import yaml

from kraftlog.metadata.declared.cluster import (
    Acl,
    ConfiguredResource,
    DeclaredCluster,
    DeclaredTopic,
    Quota,
    ScramCredential,
)
from kraftlog.metadata.declared.commands import commands
from kraftlog.metadata.declared.labels import is_kubernetes_name, kubernetes_name, terraform_label
from kraftlog.metadata.declared.strimzi import strimzi, strimzi_resources
from kraftlog.metadata.declared.terraform import terraform
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = ["orders", "Orders_v2", "7.days", "a.b", "x" * 249, "_", "meta.bulk_0", "meta-bulk-0"]
EMPTY = DeclaredCluster({}, (), (), (), (), (), ())

# The fields of Strimzi's custom resources of the release v1, with their types.
_METADATA = {
    "type": "object",
    "required": ["name", "labels"],
    "properties": {"name": {"pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"}},
}
_SPECS = {
    "KafkaTopic": {
        "properties": {
            "topicName": {"type": "string"},
            "partitions": {"type": "integer", "minimum": 1},
            "replicas": {"type": "integer", "minimum": 1, "maximum": 32767},
            "config": {"type": "object"},
        },
    },
    "KafkaUser": {
        "properties": {
            "authentication": {
                "required": ["type"],
                "properties": {
                    "type": {"enum": ["tls", "tls-external", "scram-sha-512"]},
                    "password": {"required": ["valueFrom"]},
                },
                "additionalProperties": False,
            },
            "authorization": {
                "required": ["type", "acls"],
                "properties": {
                    "type": {"enum": ["simple"]},
                    "acls": {
                        "type": "array",
                        "items": {
                            "required": ["resource", "operations"],
                            "additionalProperties": False,
                            "properties": {
                                "type": {"enum": ["allow", "deny"]},
                                "host": {"type": "string"},
                                "operations": {
                                    "type": "array",
                                    "items": {
                                        "enum": [
                                            *("Read", "Write", "Create", "Delete", "Alter", "Describe", "All"),
                                            *("ClusterAction", "AlterConfigs", "DescribeConfigs", "IdempotentWrite"),
                                        ]
                                    },
                                },
                                "resource": {
                                    "required": ["type"],
                                    "additionalProperties": False,
                                    "properties": {
                                        "type": {"enum": ["topic", "group", "cluster", "transactionalId"]},
                                        "name": {"type": "string"},
                                        "patternType": {"enum": ["literal", "prefix"]},
                                    },
                                },
                            },
                        },
                    },
                },
            },
            "quotas": {
                "additionalProperties": False,
                "properties": {
                    "producerByteRate": {"type": "integer", "minimum": 0},
                    "consumerByteRate": {"type": "integer", "minimum": 0},
                    "requestPercentage": {"type": "integer", "minimum": 0},
                    "controllerMutationRate": {"type": "number", "minimum": 0},
                },
            },
        },
    },
}
# The arguments of the resources of Terraform's provider, and those without which it refuses them.
_ARGUMENTS = {
    "kafka_topic": ({"name", "partitions", "replication_factor"}, {"config", "lifecycle"}),
    "kafka_acl": (
        {"resource_name", "resource_type", "acl_principal", "acl_host", "acl_operation", "acl_permission_type"},
        {"resource_pattern_type_filter"},
    ),
    "kafka_quota": ({"entity_name", "entity_type"}, {"config"}),
}


def check_strimzi(resource: dict) -> None:
    assert set(resource) == {"apiVersion", "kind", "metadata", "spec"}
    assert resource["apiVersion"] == "kafka.strimzi.io/v1"
    jsonschema.validate(resource["metadata"], _METADATA)
    jsonschema.validate(resource["spec"], {**_SPECS[resource["kind"]], "additionalProperties": False})


def declared(name: str) -> DeclaredCluster:
    return DeclaredCluster.of(image_at(MetadataLog.open(GOLDEN / name / "log"), None, []).image)


def words(cluster: DeclaredCluster) -> list[list[str]]:
    """Return the words of each command, as a shell takes them."""
    lines = "".join(commands(cluster)).splitlines()
    return [shlex.split(line) for line in lines if line.startswith("kafka-")]


def texts(value: object) -> object:
    """Return what a parser of HCL has found, with its texts as they are meant."""
    if isinstance(value, dict):
        return {texts(key): texts(each) for key, each in value.items() if key != "__is_block__"}
    if isinstance(value, list):
        return [texts(each) for each in value]
    if isinstance(value, str) and value.startswith('"'):
        return json.loads(value).replace("$${", "${").replace("%%{", "%{")
    return value


def resources(text: str) -> dict[str, list[dict]]:
    """Return the arguments of Terraform's resources by type."""
    found: dict[str, list[dict]] = {}
    for resource in texts(hcl2.loads(text)).get("resource", ()):
        ((kind, labelled),) = resource.items()
        found.setdefault(kind, []).extend(labelled.values())
    return found


@pytest.mark.parametrize("name", ["metadata", "metadata_dynamic"])
def test_what_a_real_cluster_declares_is_what_its_image_has(name: str) -> None:
    expected = json.loads((GOLDEN / name / "expected" / "image_final.json").read_text())
    cluster = declared(name)
    records: dict[str, list[dict]] = {}
    for record in expected["records"]:
        records.setdefault(record["type"], []).append(record["data"])
    names = {row["topicId"]: row["name"] for row in records["TOPIC_RECORD"]}
    partitions: dict[str, int] = {}
    for row in records["PARTITION_RECORD"]:
        partitions[names[row["topicId"]]] = partitions.get(names[row["topicId"]], 0) + 1
    of_kafka = {"__consumer_offsets", "__transaction_state", "__share_group_state"}
    assert {topic.name: topic.partitions for topic in cluster.topics} == {
        topic: count for topic, count in partitions.items() if topic not in of_kafka
    }
    configs = [
        (row["resourceType"], row["resourceName"], row["name"], row["value"]) for row in records["CONFIG_RECORD"]
    ]
    shown = [(2, topic.name, *config) for topic in cluster.topics for config in topic.configs.items()]
    types = {"BROKER": 4, "CLIENT_METRICS": 16, "GROUP": 32}
    shown += [
        (types[one.resource_type], one.name, *config) for one in cluster.resources for config in one.configs.items()
    ]
    assert sorted(shown) == sorted(config for config in configs if config[1] not in of_kafka)
    assert len(cluster.acls) == len(records["ACCESS_CONTROL_ENTRY_RECORD"])
    assert sum(len(quota.values) for quota in cluster.quotas) == len(records["CLIENT_QUOTA_RECORD"])
    assert len(cluster.credentials) == len(records["USER_SCRAM_CREDENTIAL_RECORD"])


def test_commands_of_topics() -> None:
    topic = DeclaredTopic("it's", 3, 2, True, {"cleanup.policy": "compact,delete"})
    assert words(replace(EMPTY, topics=(topic,))) == [
        [
            *("kafka-topics.sh", "--bootstrap-server", "$BOOTSTRAP_SERVER", "--create", "--if-not-exists"),
            *("--topic", "it's", "--partitions", "3", "--replication-factor", "2"),
            *("--config", "cleanup.policy=compact,delete"),
        ]
    ]


def test_a_topic_whose_creation_is_cut_off_is_noted() -> None:
    """Its record is in the image before those of its partitions are."""
    log = MetadataLog.open(GOLDEN / "metadata" / "log")
    at = next(
        offset
        for offset in range(10, 60)
        if "no partitions" in "".join(DeclaredCluster.of(image_at(log, offset, []).image).notes)
    )
    cluster = DeclaredCluster.of(image_at(log, at, []).image)
    assert all(topic.partitions for topic in cluster.topics)


def test_commands_of_configs_and_quotas() -> None:
    cluster = replace(
        EMPTY,
        resources=(
            ConfiguredResource("BROKER", "", {"a": "1", "b": "x,y"}),
            ConfiguredResource("GROUP", "g", {"c": "2"}),
        ),
        quotas=(Quota({"client-id": None, "user": "u"}, {"request_percentage": 12.5, "producer_byte_rate": 1e9}),),
    )
    assert [line[3:] for line in words(cluster)] == [
        ["--alter", "--entity-type", "brokers", "--entity-default", "--add-config", "a=1,b=[x,y]"],
        ["--alter", "--entity-type", "groups", "--entity-name", "g", "--add-config", "c=2"],
        [
            *(
                "--alter",
                "--entity-type",
                "clients",
                "--entity-default",
                "--entity-type",
                "users",
                "--entity-name",
                "u",
            ),
            *("--add-config", "request_percentage=12.5,producer_byte_rate=1000000000"),
        ],
    ]


def test_commands_of_acls() -> None:
    cluster = replace(
        EMPTY,
        acls=(
            Acl("User:a", "TRANSACTIONAL_ID", "t", "PREFIXED", "DESCRIBE_CONFIGS", "ALLOW", "*"),
            Acl("User:b", "CLUSTER", "kafka-cluster", "LITERAL", "ALL", "DENY", "10.0.0.1"),
            Acl("User:c", "UNKNOWN", "n", "LITERAL", "ALL", "DENY", "*"),
        ),
    )
    assert [line[3:] for line in words(cluster)] == [
        [
            *("--add", "--allow-principal", "User:a", "--allow-host", "*", "--operation", "DescribeConfigs"),
            *("--transactional-id", "t", "--resource-pattern-type", "prefixed"),
        ],
        ["--add", "--deny-principal", "User:b", "--deny-host", "10.0.0.1", "--operation", "All", "--cluster"],
    ]
    assert "# no tool adds the ACL: DENY User:c ALL on UNKNOWN n (LITERAL) from *\n" in list(commands(cluster))


def test_the_script_is_one_that_a_shell_takes_and_that_names_its_broker() -> None:
    script = "".join(commands(declared("metadata")))
    assert subprocess.run(["/bin/sh", "-n"], input=script, text=True, check=False).returncode == 0
    without = subprocess.run(
        ["/bin/sh"], input=script, text=True, capture_output=True, env={"PATH": "/usr/bin:/bin"}, check=False
    )
    assert without.returncode != 0
    assert "is the address of a broker of the new cluster" in without.stderr


@pytest.mark.parametrize("text", ["a\nkafka-topics.sh --delete", "$(reboot)", "`reboot`", "'; reboot '"])
def test_no_text_of_a_log_becomes_a_command(text: str) -> None:
    cluster = replace(
        EMPTY,
        topics=(DeclaredTopic("t", 1, 1, False, {"k": text}),),
        resources=(ConfiguredResource("OTHER", text, {"k": text}),),
        credentials=(ScramCredential(text, "SCRAM-SHA-256", 4096),),
        notes=(text,),
    )
    script = "".join(commands(cluster))
    echoed = script.replace("\nkafka-topics.sh", "\nprintf '%s|'", 1)
    done = subprocess.run(
        ["/bin/sh"],
        input=echoed,
        text=True,
        capture_output=True,
        env={"BOOTSTRAP_SERVER": "b:1", "PATH": "/nowhere"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f"--config|k={text}|")
    credential = next(line for line in script.splitlines() if "its password is not in the log" in line)
    assert credential.startswith("# user ")


def test_the_resources_of_strimzi_have_the_fields_of_their_schemas() -> None:
    for name in ("metadata", "metadata_dynamic"):
        notes: list[str] = []
        made = strimzi_resources(declared(name), "prod", notes)
        assert {each["kind"] for each in made} == {"KafkaTopic", "KafkaUser"}
        for resource in made:
            check_strimzi(resource)
            assert resource["metadata"]["labels"] == {"strimzi.io/cluster": "prod"}
        assert list(yaml.safe_load_all("".join(strimzi(declared(name), "prod")))) == made


def test_topics_of_strimzi_keep_their_names() -> None:
    topics = tuple(DeclaredTopic(name, 1, 1, True, {"retention.ms": "5", "preallocate": "true"}) for name in NAMES)
    made = strimzi_resources(replace(EMPTY, topics=topics), "prod", [])
    assert [each["spec"].get("topicName", each["metadata"]["name"]) for each in made] == NAMES
    assert len({each["metadata"]["name"] for each in made}) == len(NAMES)
    assert made[0]["spec"]["config"] == {"retention.ms": 5, "preallocate": True}


def test_users_of_strimzi() -> None:
    cluster = replace(
        EMPTY,
        acls=(
            Acl("User:CN=tls", "TOPIC", "t", "PREFIXED", "READ", "ALLOW", "*"),
            Acl("User:CN=tls", "TOPIC", "t", "PREFIXED", "WRITE", "ALLOW", "*"),
            Acl("User:CN=tls", "CLUSTER", "kafka-cluster", "LITERAL", "ALTER", "DENY", "h"),
            Acl("User:*", "TOPIC", "t", "LITERAL", "READ", "ALLOW", "*"),
            Acl("Role:admin", "TOPIC", "t", "LITERAL", "READ", "ALLOW", "*"),
            Acl("User:scram", "USER", "u", "LITERAL", "CREATE_TOKENS", "ALLOW", "*"),
            Acl("User:Not_allowed", "TOPIC", "t", "LITERAL", "READ", "ALLOW", "*"),
        ),
        quotas=(
            Quota({"user": "scram"}, {"controller_mutation_rate": 0.5, "producer_byte_rate": 7.0}),
            Quota({"user": "halves"}, {"request_percentage": 0.5}),
            Quota({"user": "tls", "client-id": "c"}, {"producer_byte_rate": 1.0}),
            Quota({"user": None}, {"producer_byte_rate": 1.0}),
        ),
        credentials=(ScramCredential("scram", "SCRAM-SHA-512", 4096), ScramCredential("old", "SCRAM-SHA-256", 4096)),
    )
    notes: list[str] = []
    made = {each["metadata"]["name"]: each["spec"] for each in strimzi_resources(cluster, "prod", notes)}
    assert made == {
        "tls": {
            "authentication": {"type": "tls-external"},
            "authorization": {
                "type": "simple",
                "acls": [
                    {
                        "type": "allow",
                        "resource": {"type": "topic", "name": "t", "patternType": "prefix"},
                        "operations": ["Read", "Write"],
                        "host": "*",
                    },
                    {"type": "deny", "resource": {"type": "cluster"}, "operations": ["Alter"], "host": "h"},
                ],
            },
        },
        "scram": {
            "authentication": {
                "type": "scram-sha-512",
                "password": {"valueFrom": {"secretKeyRef": {"name": "scram-password", "key": "password"}}},
            },
            "quotas": {"controllerMutationRate": 0.5, "producerByteRate": 7},
        },
    }
    for left_out in (
        "User:*",
        "Role:admin",
        "CREATE_TOKENS",
        "Not_allowed",
        "halves",
        "client-id c",
        "user default",
        "user old",
    ):
        assert any(left_out in note for note in notes), left_out


@pytest.mark.parametrize("name", ["metadata", "metadata_dynamic"])
def test_the_resources_of_terraform_have_the_arguments_of_the_provider(name: str) -> None:
    cluster = declared(name)
    made = resources("".join(terraform(cluster)))
    for kind, each in made.items():
        required, optional = _ARGUMENTS[kind]
        for arguments in each:
            assert required <= set(arguments) <= required | optional
    assert [(one["name"], one["partitions"]) for one in made["kafka_topic"]] == [
        (topic.name, topic.partitions) for topic in cluster.topics
    ]
    assert [one.get("config", {}) for one in made["kafka_topic"]] == [dict(topic.configs) for topic in cluster.topics]
    assert all(one["lifecycle"] == [{"prevent_destroy": True}] for one in made["kafka_topic"])
    assert len(made["kafka_acl"]) == len(cluster.acls)


def test_texts_of_terraform_are_no_templates() -> None:
    text = 'a"b\\c${path.root}%{if true}\n'
    cluster = replace(EMPTY, topics=(DeclaredTopic("t", 1, 1, True, {"k": text}),))
    assert resources("".join(terraform(cluster)))["kafka_topic"][0]["config"] == {"k": text}


def test_terraform_imports_what_it_declares() -> None:
    acl = Acl("User:a", "TRANSACTIONAL_ID", "t", "PREFIXED", "DESCRIBE_CONFIGS", "ALLOW", "*")
    cluster = replace(EMPTY, topics=(DeclaredTopic("7.days", 1, 1, True, {}),), acls=(acl,))
    found = texts(hcl2.loads("".join(terraform(cluster))))
    assert [each["id"] for each in found["import"]] == [
        "7.days",
        "User:a|*|DescribeConfigs|Allow|TransactionalID|t|Prefixed",
    ]
    labels = [
        f"${{{kind}.{json.loads(label)}}}"
        for each in found["resource"]
        for kind, by in each.items()
        for label in map(json.dumps, by)
    ]
    assert [each["to"] for each in found["import"]] == labels


def test_quotas_of_terraform() -> None:
    cluster = replace(
        EMPTY,
        quotas=(
            Quota({"user": "a"}, {"request_percentage": 0.5, "producer_byte_rate": 7.0}),
            Quota({"user": None}, {"producer_byte_rate": 1.0}),
            Quota({"user": "a", "client-id": "b"}, {"producer_byte_rate": 1.0}),
        ),
    )
    text = "".join(terraform(cluster))
    assert resources(text)["kafka_quota"] == [
        {"entity_name": "a", "entity_type": "user", "config": {"request_percentage": 0.5, "producer_byte_rate": 7}}
    ]
    assert text.count("# no resource has the quotas of") == 2


@pytest.mark.parametrize("label", [kubernetes_name, terraform_label])
def test_labels_are_allowed_and_differ(label) -> None:
    labels = [label(name) for name in NAMES]
    assert len(set(labels)) == len(NAMES)
    assert all(map(is_kubernetes_name, map(kubernetes_name, NAMES)))


def test_passwords_are_left_out_unless_they_are_asked_for(tmp_path: Path) -> None:
    image = image_at(MetadataLog.open(GOLDEN / "metadata" / "log"), None, []).image
    tables = image.tables()
    rows = tables["ConfigRecord"].to_pylist()
    rows[0] |= {"resource_type": 4, "resource_name": "1", "name": "ssl.key.password", "value": "s3cret"}

    class WithPassword:
        def tables(self) -> dict:
            return {**tables, "ConfigRecord": tables["ConfigRecord"].from_pylist(rows, tables["ConfigRecord"].schema)}

    hidden, shown = (DeclaredCluster.of(WithPassword(), show_secrets=show) for show in (False, True))
    for cluster, is_shown in ((hidden, False), (shown, True)):
        for text in (commands(cluster), strimzi(cluster, "c"), terraform(cluster)):
            assert ("s3cret" in "".join(text)) == is_shown
    assert any("ssl.key.password" in note for note in hidden.notes)


def test_the_command_writes_them(tmp_path: Path, kraftlog_command: Callable[..., Any]) -> None:
    log = GOLDEN / "metadata" / "log"
    for arguments in (["commands"], ["strimzi", "--cluster-name", "prod"], ["terraform"]):
        target = tmp_path / arguments[0]
        done = kraftlog_command("image", log, "--as", *arguments, "--output", target)
        assert (done.returncode, done.stderr) == (0, "")
        assert "meta.bulk_0" in target.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--as", "strimzi"], "--as strimzi and --cluster-name go together"),
        (["--as", "commands", "--cluster-name", "c"], "--as strimzi and --cluster-name go together"),
        (["--as", "commands", "--type", "TopicRecord"], "--as goes neither with --type nor with --format"),
        (["--as", "commands", "--format", "json"], "--as goes neither with --type nor with --format"),
    ],
)
def test_options_that_do_not_go_together(
    arguments: list[str], message: str, kraftlog_command: Callable[..., Any]
) -> None:
    done = kraftlog_command("image", GOLDEN / "metadata" / "log", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
