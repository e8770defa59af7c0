"""``kraftlog broker`` as a user starts and stops it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import confluent_kafka
import pytest

import kraftlog
from broker_process import LIMIT, BrokerProcess
from certificates import certificates

OTHER_THREAD = """
import signal, threading, time
from kraftlog.cli.server_process import EndSignal

def signalled():
    time.sleep(0.2)  # the main thread waits by then; if it does not yet, the signal is easier to notice
    signal.pthread_kill(threading.get_ident(), {number})
    time.sleep(60)

ended = EndSignal()
threading.Thread(target=signalled, daemon=True).start()
ended.wait("address", None)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_another_thread_gets_is_noticed(number: signal.Signals):
    program = OTHER_THREAD.format(number=int(number))
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=LIMIT)
    assert (ended.returncode, ended.stdout) == (0, b"address\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_runs_until_a_signal_and_closes_in_order(tmp_path: Path, number: signal.Signals):
    path = tmp_path / "log"
    with BrokerProcess(path, "--auto-create-partitions", "2") as broker:
        address = broker.bootstrap_servers
        options = {"bootstrap.servers": address, "transactional.id": "t"}
        producer = confluent_kafka.Producer(options)
        producer.init_transactions(LIMIT)
        for value in ("committed", "open"):
            producer.begin_transaction()
            producer.produce("orders", value, partition=1)
            assert producer.flush(LIMIT) == 0
            if value == "committed":
                producer.commit_transaction(LIMIT)
        closed = broker.close(number)
    assert closed == (0, f"{address}\n", "topics: 0\n")
    assert (path / ".kafka_cleanshutdown").exists()
    log = kraftlog.open(path)
    assert log.errors().num_rows == 0
    assert log.findings()["code"].to_pylist() == ["open_transaction"]  # it continues when the broker is back
    states = kraftlog.open(path, topics=["orders"]).records(
        ["partition", "value", "transaction_state"], isolation_level="read_uncommitted"
    )
    assert states.to_table().to_pylist() == [
        {"partition": 1, "value": b"committed", "transaction_state": "committed"},
        {"partition": 1, "value": b"open", "transaction_state": "open"},
    ]


def test_a_directory_that_another_broker_has(tmp_path: Path):
    with BrokerProcess(tmp_path / "log"):
        command = [sys.executable, "-m", "kraftlog", "broker", str(tmp_path / "log"), "--port", "0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode != 0
    assert "held by a broker or another writer" in done.stderr
    assert "Traceback" not in done.stderr


def test_tls_and_users(tmp_path: Path):
    files = certificates(tmp_path / "files")
    users = tmp_path / "users.json"
    users.write_text('{"alice": "secret"}')
    users.chmod(0o600)
    words = ("--ssl-certificate", files.server, "--ssl-key", files.server_key, "--ssl-client-ca", files.authority)
    words += ("--users", users, "--sasl-mechanism", "PLAIN", "--sasl-mechanism", "SCRAM-SHA-256")
    with BrokerProcess(tmp_path / "log", *map(str, words)) as broker:
        options = {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "alice",
            "sasl.password": "secret",
            "ssl.ca.location": str(files.authority),
            "ssl.certificate.location": str(files.client),
            "ssl.key.location": str(files.client_key),
        }
        producer = confluent_kafka.Producer(options)
        producer.produce("orders", b"one")
        assert producer.flush(LIMIT) == 0
        errors: list[confluent_kafka.KafkaError] = []
        refused = {"sasl.mechanism": "SCRAM-SHA-512", "error_cb": errors.append, "log_level": 0}
        producer = confluent_kafka.Producer(options | refused)
        producer.poll(2)
        assert confluent_kafka.KafkaError._AUTHENTICATION in [error.code() for error in errors]
        assert broker.close()[0] == 0


def test_a_ready_file_that_cannot_be_written(tmp_path: Path):
    command = [sys.executable, "-m", "kraftlog", "broker", "log", "--port", "0", "--ready-file", "none/ready"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[1:] == ["kraftlog: [Errno 2] No such file or directory: 'none/ready'"]
    assert (tmp_path / "log" / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--ssl-key", "users.json"), "--ssl-key and --ssl-client-ca need --ssl-certificate"),
        (("--ssl-certificate", "users.json"), "users.json: expected a certificate in PEM, found none"),
        (("--users", "users.json"), "users.json: expected a JSON object of users and their passwords"),
        (("--users", "shared.json"), "shared.json: expected a file that only its owner can read"),
        (("--sasl-mechanism", "PLAIN"), "--sasl-mechanism needs --users"),
        (("--users", "users.json", "--sasl-mechanism", "GSSAPI"), "'GSSAPI' is not one of 'PLAIN', 'SCRAM-SHA-256'"),
        (("--users", "missing.json"), "'missing.json' does not exist"),
    ],
)
def test_files_of_tls_and_users_that_cannot_be_used(tmp_path: Path, words: tuple[str, ...], message: str):
    for name, permissions in (("users.json", 0o600), ("shared.json", 0o640)):
        (tmp_path / name).write_text("[]")
        (tmp_path / name).chmod(permissions)
    command = [sys.executable, "-m", "kraftlog", "broker", "log", "--port", "0", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "log").exists()
