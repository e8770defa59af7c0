"""Kafka's own clients log in at a broker of this package, over TLS, and are refused as by Kafka."""

from __future__ import annotations

from pathlib import Path

from jvm import Jvm
from kafka_tool import Run, run_tools

import kraftlog
from certificates import Certificates, certificates
from kraftlog.server.tls import Tls
from kraftlog.server.users import MECHANISMS, PLAIN, Users

PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
# the last one has letters that SASLprep would replace or remove
PASSWORDS = {"alice": "a password", "bob=,": "pass,word=é", "ªⅨ": "pass\u00adwordⅨ"}


def config(path: Path, files: Certificates, mechanism: str, name: str, password: str) -> str:
    """Write the properties of a client; return their path."""
    login = "plain.PlainLoginModule" if mechanism == PLAIN else "scram.ScramLoginModule"
    properties = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": files.authority,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": path.with_suffix(".pem"),
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"org.apache.kafka.common.security.{login} required"
        f' username="{name}" password="{password}";',
    }
    path.with_suffix(".pem").write_bytes(files.client_key.read_bytes() + files.client.read_bytes())
    text = "".join(f"{key}={value}\n" for key, value in properties.items())
    path.write_bytes(text.encode("ascii", "backslashreplace").replace(b"\\x", b"\\u00"))
    return str(path)


def test_clients_with_each_mechanism(java: Jvm, tmp_path: Path):
    files = certificates(tmp_path / "files")
    tls = Tls(files.server, files.server_key, files.authority)
    with kraftlog.Broker(tmp_path / "logs", tls=tls, users=Users(PASSWORDS)) as broker:
        broker.store.create_topic("orders")
        broker.faults.delay("Produce", 1)  # each producer waits for the answer before it ends, and keeps their order
        where = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "orders"]
        users = [(mechanism, name) for mechanism in MECHANISMS for name in PASSWORDS]
        runs = []
        for number, (mechanism, name) in enumerate(users):
            properties = config(tmp_path / f"{number}", files, mechanism, name, PASSWORDS[name])
            runs.append(Run(PRODUCER, [*where, "--producer.config", properties], f"{number}\n"))
        reading = ["--from-beginning", "--max-messages", str(len(users)), "--group", "g"]
        runs.append(Run(CONSUMER, [*where, *reading, "--consumer.config", properties]))
        for mechanism in MECHANISMS:
            properties = config(tmp_path / f"wrong-{mechanism}", files, mechanism, "alice", "another password")
            runs.append(Run(CONSUMER, [*where, "--consumer.config", properties, "--timeout-ms", "10000"]))
        *written, read, plain, scram, other_scram = run_tools(java, runs)
        assert [one.code for one in written] == [0] * len(users), written
        lines = read.output.splitlines()[-len(users) :]  # the first one says that an option has another name now
        assert lines == [str(number) for number in range(len(users))], read
        for refused in (plain, scram, other_scram):
            assert any("SaslAuthenticationException" in line for line in refused.errors), refused
    rows = kraftlog.open(tmp_path / "logs", topics=["orders"]).records(["value"]).to_table().to_pylist()
    assert [row["value"].decode() for row in rows] == [str(number) for number in range(len(users))]
