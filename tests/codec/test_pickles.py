"""What may cross processes does: exceptions, faults and records come back as they were."""

from __future__ import annotations

import copy
import importlib
import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import kraftlog
from kraftlog.codec.compression import DecompressionError
from kraftlog.errors import Fault, InputError, RecordError
from kraftlog.log_store.errors import LostRecordsError

FAULT = Fault("bad_crc", "batch at byte 3: stored crc 1", 3, 60, 7, None, "orders", 0, 0)
READ_ERROR = OSError(5, "Input/output error", "/logs/orders-0/0.log")


def own_exceptions() -> Iterator[BaseException]:
    """One of each class of exceptions that is offered."""
    modules = ("kraftlog.errors", "kraftlog.log_store.errors", "kraftlog.broker.errors")
    for module in map(importlib.import_module, modules):
        for value in vars(module).values():
            if not (isinstance(value, type) and issubclass(value, Exception) and value.__module__ == module.__name__):
                continue
            if issubclass(value, RecordError):
                yield value("what was found", FAULT)
            elif issubclass(value, LostRecordsError):
                yield value(2, ValueError("what refused the first"))
            elif issubclass(value, InputError):
                yield value(READ_ERROR, 77)
                yield value(OSError("no number"), 0)
            else:
                yield value("what was refused")
    yield DecompressionError("the stream ends early")


ALL = list(own_exceptions())


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_exceptions(error: BaseException, again):
    found = again(error)
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert found.args == error.args
    assert {name: repr(value) for name, value in vars(found).items()} == {
        name: repr(value) for name, value in vars(error).items()
    }
    for name in ("errno", "strerror", "filename", "fault", "position", "base_offset", "record_index", "kafka_code"):
        assert getattr(found, name, None) == getattr(error, name, None)


def test_the_classes_are_those_of_the_package():
    """None that ``kraftlog`` offers is left out."""
    offered = {value for value in (getattr(kraftlog, name) for name in kraftlog.__all__) if isinstance(value, type)}
    assert {kind for kind in offered if issubclass(kind, Exception)} <= {type(error) for error in ALL}


def _fail() -> None:
    raise InputError(READ_ERROR, 77)


def test_an_error_of_a_process_of_a_pool():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, pytest.raises(InputError) as raised:
        pool.submit(_fail).result()
    assert (raised.value.position, raised.value.filename) == (77, READ_ERROR.filename)


def test_faults():
    assert pickle.loads(pickle.dumps(FAULT)) == FAULT
