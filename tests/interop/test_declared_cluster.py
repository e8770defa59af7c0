"""Kafka's tools take the commands of ``kraftlog image --as commands``, and make the cluster that they were made of."""

from __future__ import annotations

import shlex
from itertools import groupby
from pathlib import Path

import pytest
from jvm import Jvm
from kafka_broker import WITH_ACLS, Broker
from kafka_tool import run_tool

from golden_files import GOLDEN
from kraftlog.metadata.declared.cluster import DeclaredCluster
from kraftlog.metadata.declared.commands import commands
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at

TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
}


# A new cluster sets it where eligible leader replicas are enabled (KIP-966).
OF_KAFKA = {("BROKER", "", "min.insync.replicas", "1")}


def configs(cluster: DeclaredCluster) -> set[tuple[str, ...]]:
    return {
        (resource.resource_type, resource.name, *config)
        for resource in cluster.resources
        for config in resource.configs.items()
    }


def declared(directory: Path) -> DeclaredCluster:
    return DeclaredCluster.of(image_at(MetadataLog.open(directory), None, []).image)


@pytest.mark.parametrize("name", ["metadata", "metadata_dynamic"])
def test_a_cluster_that_the_commands_make_is_declared_the_same(java: Jvm, tmp_path: Path, name: str) -> None:
    cluster = declared(GOLDEN / name / "log")
    lines = [shlex.split(line) for line in commands(cluster) if line.startswith("kafka-")]
    with Broker(java, tmp_path, WITH_ACLS) as broker:
        for script, of_script in groupby(lines, key=lambda line: line[0]):
            runs = [
                [broker.bootstrap_servers if word == "$BOOTSTRAP_SERVER" else word for word in line[1:]]
                for line in of_script
            ]
            for run, done in zip(runs, run_tool(java, TOOLS[script], runs), strict=True):
                # TopicCommand takes the end of its own process for an error of what it did before.
                assert done.code == 0 or "Created topic" in done.output, (script, run, done)
    made = declared(broker.log_dir)
    assert made.topics == cluster.topics
    assert configs(made) - OF_KAFKA == configs(cluster) - OF_KAFKA
    assert made.acls == cluster.acls
    assert made.quotas == cluster.quotas
