"""Kafka's command line tools at a broker of this package: what they print of topics, groups, transactions, the node."""

from __future__ import annotations

import json
import re
from pathlib import Path
from time import time

import confluent_kafka
import pyarrow as pa
from jvm import Jvm
from kafka_tool import Ran, Run, run_tools

import kraftlog
from kraftlog.log_store.produced_batch import ProducedBatch

TOOLS = "org.apache.kafka.tools"
TOPICS, CONFIGS = f"{TOOLS}.TopicCommand", "kafka.admin.ConfigCommand"
GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
TRANSACTIONS = f"{TOOLS}.TransactionsCommand"
QUORUM, FEATURES, CLUSTER = f"{TOOLS}.MetadataQuorumCommand", f"{TOOLS}.FeatureCommand", f"{TOOLS}.ClusterTool"
ELECTIONS, LOG_DIRS, ACLS = f"{TOOLS}.LeaderElectionCommand", f"{TOOLS}.LogDirsCommand", f"{TOOLS}.AclCommand"
VERSIONS, OFFSETS = f"{TOOLS}.BrokerApiVersionsCommand", f"{TOOLS}.GetOffsetShell"
REASSIGNMENTS = f"{TOOLS}.reassign.ReassignPartitionsCommand"
PRODUCER, CONSUMER_SPEED = f"{TOOLS}.ConsoleProducer", f"{TOOLS}.ConsumerPerformance"
PROTOCOLS = ("classic", "consumer")
LIMIT, HOUR_MS = 30.0, 3_600_000


class Tools:
    """Runs of tools at a broker, in one JVM, and what each of them printed."""

    def __init__(self, java: Jvm, bootstrap_servers: str) -> None:
        self._java = java
        self._where = ["--bootstrap-server", bootstrap_servers]
        self._runs: list[Run] = []
        self._names: list[str] = []

    def add(self, name: str, tool: str, *arguments: str, input: str = "") -> None:
        """Add a run; its address follows the first argument where that is a subcommand."""
        first = arguments[:1] if arguments and not arguments[0].startswith("--") and tool == CLUSTER else ()
        self._runs.append(Run(tool, [*first, *self._where, *arguments[len(first) :]], input))
        self._names.append(name)

    def run(self) -> dict[str, Ran]:
        """Return what each run printed, by its name."""
        ran = dict(zip(self._names, run_tools(self._java, self._runs), strict=True))
        self._runs, self._names = [], []
        return ran


def rows(ran: Ran) -> list[list[str]]:
    """Return the lines of a table that a tool printed, without its head."""
    lines = [line.split() for line in ran.output.splitlines() if line.strip()]
    return lines[1:]


def bytes_of(folder: Path) -> int:
    """Return the bytes of the segments of a partition."""
    return sum(file.stat().st_size for file in folder.glob("*.log"))


def test_topics_configs_and_the_node(java: Jvm, tmp_path: Path):
    with kraftlog.Broker(tmp_path / "logs") as broker:
        tools = Tools(java, broker.bootstrap_servers)
        orders = ("--topic", "orders")
        of_topic = ("--entity-type", "topics", "--entity-name", "orders")
        tools.add("create", TOPICS, "--create", *orders, "--partitions", "2")
        tools.add("alter", TOPICS, "--alter", *orders, "--partitions", "3")
        tools.add(
            "produce", PRODUCER, "--sync", *orders, "--reader-property", "parse.key=true", input="a\t1\nb\t2\nc\t3\n"
        )
        tools.add("topic", TOPICS, "--describe", *orders)
        tools.add("offsets", OFFSETS, *orders)
        lists = "retention.ms=1000,cleanup.policy=[compact,delete]"
        tools.add("configure", CONFIGS, "--alter", *of_topic, "--add-config", lists)
        tools.add("remove", CONFIGS, "--alter", *of_topic, "--delete-config", "retention.ms")
        tools.add("configs", CONFIGS, "--describe", *of_topic)
        tools.add("refused", CONFIGS, "--alter", *of_topic, "--add-config", "colour=red")
        tools.add("node configs", CONFIGS, "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all")
        tools.add("users", CONFIGS, "--describe", "--entity-type", "users")
        tools.add("clients", CONFIGS, "--describe", "--entity-type", "clients")
        tools.add("elect", ELECTIONS, "--election-type", "preferred", *orders, "--partition", "1")
        tools.add("elect all", ELECTIONS, "--election-type", "unclean", "--all-topic-partitions")
        tools.add("log dirs", LOG_DIRS, "--describe", "--topic-list", "orders")
        tools.add("quorum", QUORUM, "describe", "--status")
        tools.add("replication", QUORUM, "describe", "--replication")
        tools.add("acls", ACLS, "--list")
        tools.add("features", FEATURES, "describe")
        tools.add("cluster", CLUSTER, "cluster-id")
        tools.add("endpoints", CLUSTER, "list-endpoints")
        tools.add("versions", VERSIONS)
        tools.add("reassignments", REASSIGNMENTS, "--list")
        ran = tools.run()

        assert {name: one.code for name, one in ran.items() if one.code} == {"refused": 1, "acls": 1}
        last = "Topic: orders\tPartition: 2\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr:"
        assert last in ran["topic"].output
        ends = [f"orders:{one}:{broker.store.parts.partition_of(('orders', one)).next_offset}" for one in range(3)]
        assert ran["offsets"].output.split() == ends
        assert broker.store.topics["orders"].configs == {"cleanup.policy": "compact,delete"}
        assert "cleanup.policy=compact,delete" in ran["configs"].output
        assert "retention.ms" not in ran["configs"].output
        assert "unknown configuration 'colour'" in "".join(ran["refused"].errors) + ran["refused"].output
        assert "node.id=1" in ran["node configs"].output
        assert ran["users"].output == ran["clients"].output == ""
        assert ran["elect"].output == "Valid replica already elected for partitions orders-1\n"
        assert ran["elect all"].output == ""
        (directory,) = json.loads(ran["log dirs"].output.splitlines()[-1])["brokers"][0]["logDirs"]
        assert directory["logDir"] == str(broker.path)
        sizes = {one["partition"]: one["size"] for one in directory["partitions"]}
        assert sizes == {f"orders-{one}": bytes_of(broker.path / f"orders-{one}") for one in range(3)}
        assert sum(sizes.values()) > 0
        quorum = dict(line.split(":", 1) for line in ran["quorum"].output.splitlines())
        last_batch = kraftlog.open(broker.path / "__cluster_metadata-0").batches(["last_offset"]).to_pylist()[-1]
        end = last_batch["last_offset"] + 1
        assert (quorum["LeaderId"].strip(), int(quorum["HighWatermark"])) == ("1", end)
        (voter,) = json.loads(quorum["CurrentVoters"])
        assert (voter["id"], voter["directoryId"]) == (1, broker.store.parts.cluster.directory_id)
        assert [(row[0], row[2], row[-1]) for row in rows(ran["replication"])] == [("1", str(end), "Leader")]
        assert "SecurityDisabledException: No Authorizer is configured." in ran["acls"].output
        levels = r"Feature: (\S+) .*SupportedMinVersion: (\S+) .*FinalizedVersionLevel: (\S+)"
        assert re.findall(levels, ran["features"].output) == [
            ("group.version", "0", "1"),
            ("metadata.version", "3.3-IV3", "4.0-IV3"),
            ("transaction.version", "0", "2"),
        ]
        assert ran["cluster"].output.strip() == f"Cluster ID: {broker.store.parts.cluster.cluster_id}"
        assert broker.bootstrap_servers.split(":") == rows(ran["endpoints"])[0][1:3]
        assert "DescribeQuorum(55): 0 to 2 [usable: 2]" in ran["versions"].output
        assert "ElectLeaders(43): 0 to 2 [usable: 2]" in ran["versions"].output
        assert ran["reassignments"].output.strip() == "No partition reassignments found."
        tools.add("delete", TOPICS, "--delete", *orders)
        assert tools.run()["delete"].code == 0
        assert "orders" not in broker.store.topics
    assert kraftlog.open(broker.path).findings().to_pylist() == []


def test_groups_of_both_protocols(java: Jvm, tmp_path: Path):
    """Java's consumers are members, two in each group, one of them static, and stay it while the tools look."""
    with kraftlog.Broker(tmp_path / "logs") as broker:
        broker.store.create_topic("orders", 4)
        with broker.store.producer() as producer:
            for number in range(200):
                producer.send("orders", value=str(number), partition=number % 4)
        members = [
            {"consumer": {"group.id": protocol, "group.protocol": protocol} | others, "topics": ["orders"]}
            for protocol in PROTOCOLS
            for others in ({"group.instance.id": "i"}, {})
        ]
        java.run("Members", broker.bootstrap_servers, lines=members)
        offsets = {group: broker.store.committed(group) for group in PROTOCOLS}
        tools = Tools(java, broker.bootstrap_servers)
        for protocol in PROTOCOLS:
            group = ("--group", f"{protocol}-left")
            read = ("--topic", "orders", "--num-records", "200", "--timeout", "30000")
            tools.add(
                f"{protocol} read", CONSUMER_SPEED, *group, *read, "--command-property", f"group.protocol={protocol}"
            )
        tools.add("list", GROUPS, "--list", "--type", "--state")
        for protocol in PROTOCOLS:
            group, left = ("--group", protocol), ("--group", f"{protocol}-left")
            tools.add(f"{protocol} offsets", GROUPS, "--describe", *group)
            tools.add(f"{protocol} members", GROUPS, "--describe", *group, "--members", "--verbose")
            tools.add(f"{protocol} state", GROUPS, "--describe", *group, "--state", "--verbose")
            tools.add(f"{protocol} delete", GROUPS, "--delete", *group)
            reset = ("--reset-offsets", "--execute", "--topic")
            tools.add(f"{protocol} reset", GROUPS, *group, *reset, "orders", "--to-earliest")
            tools.add(f"{protocol} left reset", GROUPS, *left, *reset, "orders:0,1", "--to-offset", "7")
            tools.add(f"{protocol} left delete offsets", GROUPS, "--delete-offsets", *left, "--topic", "orders:2")
            tools.add(f"{protocol} left offsets", GROUPS, "--describe", *left)
            tools.add(f"{protocol} left delete", GROUPS, "--delete", *left)
        tools.add("groups", GROUPS, "--list")
        ran = tools.run()

        assert [one.code for one in ran.values()] == [0] * len(ran)
        assert sorted(map(tuple, rows(ran["list"]))) == [
            ("classic", "Classic", "Stable"),
            ("classic-left", "Classic", "Empty"),
            ("consumer", "Consumer", "Stable"),
            ("consumer-left", "Consumer", "Empty"),
        ]
        for protocol in PROTOCOLS:
            assert ran[f"{protocol} read"].output.splitlines()[-1].split(", ")[4] == "200"
            # a member commits nothing for a partition where it does not know its position yet
            shown = [row for row in rows(ran[f"{protocol} offsets"]) if row[3] != "-"]
            described = {("orders", int(row[2])): int(row[3]) for row in shown}
            assert described == {key: one.offset for key, one in offsets[protocol].items()}
            named = {line.split()[1]: line for line in ran[f"{protocol} members"].output.splitlines()[2:]}
            assert {row[6] for row in rows(ran[f"{protocol} offsets"])} == named.keys()
            partitions = re.findall(r"orders:(\d),(\d)", "".join(named.values()))
            # the newer protocol shows current and target partitions
            assert sorted(partitions) == sorted([("0", "1"), ("2", "3")] * (2 if protocol == "consumer" else 1))
            assert len([line for line in named.values() if line.split()[2] == "i"]) == 1
            state = ran[f"{protocol} state"].output.split()
            assert (
                state[-5:]
                == {
                    "classic": ["range", "Stable", "-", "-", "2"],
                    "consumer": ["uniform", "Stable", "2", "2", "2"],
                }[protocol]
            )
            assert "GroupNotEmptyException" in ran[f"{protocol} delete"].output
            assert "the current state is Stable" in ran[f"{protocol} reset"].output
            left = {int(row[2]): int(row[3]) for row in rows(ran[f"{protocol} left offsets"])}
            assert left == {0: 7, 1: 7, 3: 50}
            assert "was successful" in ran[f"{protocol} left delete"].output
            assert broker.store.committed(protocol) == offsets[protocol]
        assert sorted(ran["groups"].output.split()) == sorted(PROTOCOLS)
    codes = [one["code"] for one in kraftlog.open(broker.path).findings().to_pylist()]
    assert codes == ["commit_goes_back"] * 4  # of two partitions in two groups, as the tool was told to


def test_transactions_that_are_open_or_hang(java: Jvm, tmp_path: Path):
    with kraftlog.Broker(tmp_path / "logs") as broker:
        for name in ("orders", "hanging"):
            broker.store.create_topic(name)
        open_producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "open", "linger.ms": 0}
        )
        open_producer.init_transactions(LIMIT)
        open_producer.begin_transaction()
        earlier = int(time() * 1000) - HOUR_MS  # find-hanging looks only at transactions older than all timeouts
        open_producer.produce("orders", b"open", timestamp=earlier)
        assert open_producer.flush(LIMIT) == 0
        parts = broker.store.parts
        stranger = {"producer_id": 9_999, "producer_epoch": 3, "base_sequence": 0, "is_transactional": True}
        data = kraftlog.encode(pa.table({"value": ["lost"], "timestamp_ms": [earlier]}), **stranger)
        batch = ProducedBatch.checked(data, parts.topic_of("hanging"), parts.clock())
        parts.partition_of(("hanging", 0)).append_batch(batch, parts.clock())
        (known,) = broker.store.transactional_ids()

        tools = Tools(java, broker.bootstrap_servers)
        tools.add("list", TRANSACTIONS, "list")
        tools.add("describe", TRANSACTIONS, "describe", "--transactional-id", "open")
        tools.add("producers", TRANSACTIONS, "describe-producers", "--topic", "orders", "--partition", "0")
        tools.add("hanging", TRANSACTIONS, "find-hanging", "--broker-id", "1")
        tools.add("abort", TRANSACTIONS, "abort", "--topic", "hanging", "--partition", "0", "--start-offset", "0")
        tools.add("hanging afterwards", TRANSACTIONS, "find-hanging", "--broker-id", "1")
        ran = tools.run()

        assert [one.code for one in ran.values()] == [0] * len(ran), ran
        assert [row[0] for row in rows(ran["list"])] == ["open"]
        assert rows(ran["list"])[0][2:] == [str(known.producer_id), "Ongoing"]
        (described,) = rows(ran["describe"])
        assert described[1:5] == ["open", str(known.producer_id), str(known.producer_epoch), "Ongoing"]
        assert described[-1] == "orders-0"
        (producer,) = rows(ran["producers"])
        assert producer[:2] == [str(known.producer_id), str(known.producer_epoch)]
        assert producer[-1] == "0"
        (hanging,) = rows(ran["hanging"])
        assert hanging[:4] == ["hanging", "0", "9999", "3"]
        assert rows(ran["hanging afterwards"]) == []
        ended = parts.partition_of(("hanging", 0))
        assert ended.last_stable_offset == ended.next_offset == 2
        assert parts.partition_of(("orders", 0)).last_stable_offset == 0
        open_producer.commit_transaction(LIMIT)
    log = kraftlog.open(broker.path)
    committed = log.records(["topic", "value"], isolation_level="read_committed").to_table().to_pylist()
    assert [one for one in committed if not one["topic"].startswith("__")] == [{"topic": "orders", "value": b"open"}]
    assert log.errors().num_rows == 0
