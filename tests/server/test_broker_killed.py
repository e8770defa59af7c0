"""A broker that is killed at random while transactional producers write: each input has its output exactly once."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

import aiokafka
import pytest
from aiokafka.errors import KafkaError
from broker_client import check
from clients import by_librdkafka, digest

import kraftlog
from kraftlog.server.broker import Broker

LIMIT, CALL = 60.0, 2.0  # a transaction that takes longer is given up, and another producer goes on
INPUTS, WORKERS, KILLS = 40, 3, 6


async def worked(servers: str, number: int, dice: random.Random) -> None:
    """Copy inputs of a partition to outputs in transactions with their offsets, of which some are aborted."""
    until = asyncio.get_running_loop().time() + LIMIT
    partition, at = aiokafka.TopicPartition("inputs", number), 0
    while at < INPUTS:
        assert asyncio.get_running_loop().time() < until, f"worker {number} has copied {at} inputs"
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers, transactional_id=f"worker-{number}", request_timeout_ms=1000, retry_backoff_ms=10
        )
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=servers, group_id=f"group-{number}", enable_auto_commit=False
        )
        try:
            async with asyncio.timeout(CALL):
                await producer.start()
                await producer.begin_transaction()  # waits for the new epoch: the one before can no longer commit
                await producer.abort_transaction()
                await consumer.start()
                consumer.assign([partition])
                at = await consumer.committed(partition) or 0
            while at < INPUTS:
                async with asyncio.timeout(CALL):
                    at = await copied(producer, partition, at, dice)
        except (KafkaError, TimeoutError, OSError):
            pass  # the broker was away for too long
        finally:
            for client in (producer, consumer):
                with suppress(KafkaError, TimeoutError, OSError, asyncio.CancelledError):  # aiokafka passes on its own
                    await asyncio.wait_for(client.stop(), CALL)


async def copied(
    producer: aiokafka.AIOKafkaProducer, partition: aiokafka.TopicPartition, at: int, dice: random.Random
) -> int:
    """Copy some inputs in a transaction; return where the next one begins."""
    end, is_aborted = min(at + dice.randint(1, 9), INPUTS), dice.random() < 0.3
    await producer.begin_transaction()
    for number in range(at, end):
        value = f"{partition.partition} {number}" + " aborted" * is_aborted
        await producer.send("outputs", value.encode(), partition=dice.randrange(2))
    await producer.send_offsets_to_transaction({partition: end}, f"group-{partition.partition}")
    if is_aborted:
        await producer.abort_transaction()
        return at
    await producer.commit_transaction()
    return end


@pytest.mark.sweep(2)
@pytest.mark.parametrize("seed", range(40))
def test_each_input_has_its_output_once(tmp_path: Path, seed: int):
    dice = random.Random(seed)

    async def run(broker: Broker) -> None:
        dices = [random.Random(f"{seed} {number}") for number in range(WORKERS)]
        servers = broker.bootstrap_servers
        workers = [asyncio.create_task(worked(servers, number, one)) for number, one in enumerate(dices)]
        for _ in range(KILLS):
            await asyncio.sleep(dice.random() * 0.4)
            await asyncio.to_thread(broker.kill)
            await asyncio.sleep(dice.random() * 0.05)
            await asyncio.to_thread(broker.restart)
        await asyncio.gather(*workers)

    path = tmp_path / "log"
    with Broker(path, fsync=dice.choice(["commit", "close"])) as broker:
        broker.store.create_topic("inputs", partitions=WORKERS)
        with broker.store.producer() as producer:
            for number in range(WORKERS * INPUTS):
                producer.send("inputs", value="input", partition=number % WORKERS)
        configs = {"internal.segment.bytes": dice.choice([2_000, 1 << 20])}
        broker.store.create_topic("outputs", partitions=2, configs=configs)
        asyncio.run(run(broker))
        rows = by_librdkafka(broker.bootstrap_servers, "read_committed", [("outputs", 0), ("outputs", 1)])
        values = [f"{worker} {number}".encode() for worker in range(WORKERS) for number in range(INPUTS)]
        assert sorted(row.value or "" for row in rows) == sorted(digest(value) or "" for value in values)
        for number in range(WORKERS):
            (offset,) = broker.store.parts.groups.committed(f"group-{number}").values()
            assert offset.offset == INPUTS
    log = kraftlog.open(path, topics=["outputs"])
    found = log.records(["value"], isolation_level="read_committed").to_table()["value"].to_pylist()
    assert sorted(found) == sorted(values)
    assert [fault.message for fault in kraftlog.open(path).verify()] == []
    check(path)
