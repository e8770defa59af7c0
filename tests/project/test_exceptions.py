"""All exceptions of the package have one base, and stand for an error of Kafka or for none."""

from __future__ import annotations

import importlib
import pickle
import pkgutil

import pytest

import kraftlog
from kraftlog.errors import KAFKA_ERRORS, KraftlogError


def public_exceptions() -> list[type[KraftlogError]]:
    """Return the exceptions that the modules of the package define, but those that become faults of the codec."""
    found: list[type[KraftlogError]] = []
    for module in pkgutil.walk_packages(kraftlog.__path__, "kraftlog."):
        if module.name.startswith("kraftlog._native") or module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if name.startswith("_") or not name.endswith("Error") or not isinstance(value, type) or value in found:
                continue
            if issubclass(value, Exception) and value.__module__ == module.name:
                found.append(value)
    return found


def test_one_base():
    found = public_exceptions()
    assert len(found) > 30
    assert [one for one in found if not issubclass(one, KraftlogError)] == []


def test_names_of_kafka():
    for one in public_exceptions():
        assert (one.kafka_code, one.is_retriable) == KAFKA_ERRORS[one.kafka_error], one
    used = {one.kafka_error for one in public_exceptions()}
    assert used == set(KAFKA_ERRORS)
    assert len({error.code for error in KAFKA_ERRORS.values()}) == len(KAFKA_ERRORS)


def test_a_name_that_kafka_does_not_have_is_refused():
    with pytest.raises(KeyError, match="NO_SUCH_ERROR"):

        class OddError(KraftlogError, kafka_error="NO_SUCH_ERROR"):
            pass


def test_an_exception_without_a_name_has_that_of_its_base():
    class NarrowError(kraftlog.RecordTooLargeError):
        pass

    assert (NarrowError.kafka_error, NarrowError.kafka_code) == ("MESSAGE_TOO_LARGE", 10)
    again = pickle.loads(pickle.dumps(kraftlog.RecordTooLargeError("too large")))
    assert (again.kafka_error, str(again)) == ("MESSAGE_TOO_LARGE", "too large")
