"""Changes the code, one mutant of the table at a time, and runs the check that has to notice it.

``--search`` looks for such a check: first among the tests of the file, then in the simulator; ``--write`` puts what was
found into the table.
"""

from __future__ import annotations

import argparse
import importlib
import io
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]

# what the children would import anew
import hypothesis.strategies  # noqa: E402, F401
import pandas  # noqa: E402, F401
import pytest  # noqa: E402
from mutant import PACKAGE, ROOT, SIMULATION, Mutant, NotApplicableError, mutants, write  # noqa: E402

LATE = "out of time"
# packages; pytest imports the others by itself
LOADED = ("codec", "layout", "read", "tables", "write", "log_store", "audit", "protocol", "server")
SCHEDULES = 600  # of a workload with one seed
SEEDS = 4
TESTS = {  # of the files whose names begin so, those of ``tests`` that are tried, the fast ones first
    "log_store/staged": "log_store/placing log_store/staged_write",
    "log_store/overwrites": "log_store/staged_write",
    "log_store/placing": "log_store/placing log_store/staged_write",
    "log_store/write_id": "log_store/staged_write",
    "log_store/housekeeping": "log_store/cleaned_values log_store/housekeeping",
    "log_store/producer_entries": "log_store/producer_entries log_store/producers log_store/limits",
    "log_store/transaction_state": "log_store/transaction_state log_store/transactions",
    "log_store/transaction_coordinator": "log_store/transactions log_store/limits",
    "log_store/group": "log_store/group_offsets log_store/groups log_store/consumers",
    "log_store/consumer": "log_store/consumers log_store/groups log_store/interrupts",
    "log_store/producer": "log_store/producers log_store/transactions log_store/groups log_store/fork",
    "log_store/threads": "log_store/interrupted_waits",
    "log_store/": "log_store/transactions log_store/store log_store/reopening",
    "write/log_cleaner": "log_store/cleaned_values log_store/housekeeping",
    "write/cleaned": "log_store/cleaned_values log_store/housekeeping",
    "write/replaced": "log_store/cleaned_values log_store/housekeeping",
    "write/retention": "log_store/housekeeping",
    "write/offset_checkpoint": "log_store/housekeeping log_store/store",
    "write/older": "log_store/staged_write",
    "write/clean_end": "log_store/reopening",
    "write/metadata": "write/metadata_writer",
    "write/leadership": "write/metadata_writer",
    "write/streamed": "write/metadata_writer",
    "write/": "write/partition_log log_store/reopening write/failing_disk",
    "transactions/": "audit/transactions transactions/transaction",
    "audit/": "audit/transactions",
    "protocol/": "server/connections",
    "server/as_of": "server/as_of",
    "server/authentication": "server/sasl",
    "server/client_transactions": "server/broker_transactions",
    "server/committed_offsets": "server/groups",
    "server/connection": "server/frames server/connections server/tls",
    "server/consumer_group": "server/consumer_group server/consumer_group_requests",
    "server/faults": "server/broker_faults",
    "server/fetch_sessions": "server/fetch_sessions",
    "server/group": "server/groups server/restarts server/consumer_group_requests",
    "server/live_log": "server/live_partitions server/broker",
    "server/marker_requests": "server/markers",
    "server/produce_requests": "server/broker server/broker_transactions",
    "server/reading_requests": "server/leader_epochs server/broker",
    "server/received_bytes": "server/frames",
    "server/redacted_batches": "server/redacted",
    "server/scram": "server/scram",
    "server/served_log": "server/served_partition server/leader_epochs",
    "server/tls": "server/tls",
    "server/transaction_requests": "server/broker_transactions server/restarts",
    "server/users": "server/sasl server/scram",
    "server/": "server/broker server/connections",
}
WORKLOADS = {  # as ``TESTS``
    "log_store/staged": "SinkWorkload(overwrite);SinkWorkload(append)",
    "log_store/overwrites": "SinkWorkload(overwrite)",
    "log_store/housekeeping": "CompactWorkload;StoreWorkload(1)",
    "log_store/": "CompactWorkload;StoreWorkload(1);StoreWorkload(2);SinkWorkload(overwrite);BrokerWorkload(2)",
    "write/replaced": "CompactWorkload",
    "write/cleaned": "CompactWorkload",
    "write/log_cleaner": "CompactWorkload",
    "write/older": "SinkWorkload(overwrite)",
    "write/metadata": "MetadataWorkload(commit)",
    "write/": "PartitionWorkload(commit);PartitionWorkload(batch);PartitionWorkload(batch, no recovery point);"
    "StoreWorkload(1);SinkWorkload(append)",
    "server/": "BrokerWorkload(2);BrokerWorkload(0)",
    "protocol/": "BrokerWorkload(2)",
}


def of_file(table: dict[str, str], file: str) -> str:
    """Return what the first beginning of a file's name stands for."""
    return next(found for beginning, found in table.items() if file.startswith(beginning))


class _FirstFailure:
    """Notes the first test that fails."""

    def __init__(self) -> None:
        self.name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid or "collection"


def failing_test(tests: list[str]) -> str:
    """Run tests until one fails; return its name."""
    first = _FirstFailure()
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:benchmark"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # the parent has imported pyarrow
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        code = pytest.main([*tests, *options], plugins=[first])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED) and not first.name:
        return f"pytest ended with {code!r}"
    return first.name


def violated(workload: str, seed: int, schedules: int = SCHEDULES) -> bool:
    """Whether the simulator notices."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "simulation")]
    logging.disable(logging.CRITICAL)
    from runner import Simulation, ViolationError
    from workloads import WORKLOADS as KNOWN

    (make,) = (make for make in KNOWN if make().name == workload)
    simulation = Simulation(make(), seed)
    simulation.shrinks = False
    try:
        simulation.explore(schedules, variants=2)
    except ViolationError:
        return True
    except Exception:  # the code under the workload came to what no disk explains
        return True
    finally:
        logging.disable(logging.NOTSET)
    return False


def noticed(check: str) -> str:
    """Run a check; return it when it fails."""
    if not check.startswith(SIMULATION):
        return failing_test([str(ROOT / check)])
    workload, _, seed = check.removeprefix(SIMULATION).rpartition(" ")
    return check if violated(workload, int(seed)) else ""


def searched(mutant: Mutant, where: str) -> str:
    """Return a check that notices a mutant; empty when there is none."""
    found = ""
    if where != "simulation":
        files = [ROOT / "tests" / each.replace("/", "/test_") for each in of_file(TESTS, mutant.file).split()]
        found = failing_test([f"{file}.py" for file in files])
    if where != "tests":
        tries = [(0, SCHEDULES // 4), *((seed, SCHEDULES) for seed in range(SEEDS))]
        found = found or next(filter(None, (_simulated(mutant, *each) for each in tries)), "")
    return found


def _simulated(mutant: Mutant, seed: int, schedules: int) -> str:
    """Return the first workload in which the simulator notices something."""
    workloads = of_file(WORKLOADS, mutant.file).split(";")
    return next((f"{SIMULATION}{each} {seed}" for each in workloads if violated(each, seed, schedules)), "")


def load() -> None:
    """Import the package of this tree; a child changes the code of its functions."""
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "python")]
    for folder in LOADED:
        for path in sorted((PACKAGE / folder).glob("[!_]*.py")):
            importlib.import_module(f"kraftlog.{folder}.{path.stem}")


def in_child(mutant: Mutant, check: Callable[[], str], cpu: int) -> str:
    """Return what a check says in a process of its own that has the mutant."""
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 30))
            mutant.install()
            text = check()
        except NotApplicableError as error:
            print(error, file=sys.stderr)
            text = ""
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(written, text.encode())
        os._exit(0)
    os.close(written)
    with open(read, "rb") as answer:  # noqa: PTH123
        text = answer.read().decode()
    _, status = os.waitpid(child, 0)
    if not status:
        return text
    return LATE if os.WTERMSIG(status) == signal.SIGXCPU else f"ended by signal {os.WTERMSIG(status)}"


def main() -> int:
    """Print each mutant with what noticed it; 1 when one is not noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants; by default all")
    parser.add_argument("--search", choices=("tests", "simulation", "all"), help="look for a check in these")
    parser.add_argument("--missing", action="store_true", help="only those for which the table has none")
    parser.add_argument("--write", action="store_true", help="put what was found into the table")
    parser.add_argument("--unchanged", action="store_true", help="change nothing: no check may notice anything then")
    parser.add_argument("--without", default="", help="a file with names of mutants that are left out, one a line")
    parser.add_argument("--part", default="1/1", help="2/4: the second quarter")
    parser.add_argument("--cpu", type=int, default=300, help="most seconds of CPU for a mutant")
    options = parser.parse_args()
    at, of = map(int, options.part.split("/"))
    left_out = {line.split()[0] for line in Path(options.without).read_text().splitlines()} if options.without else ()
    known = {each.name: each for each in mutants()}
    chosen = [known[name] for name in options.names or known if name not in left_out]
    chosen = [each for each in chosen if not each.equivalent and (options.search or each.killed_by)]
    chosen = [each for each in chosen if not (options.missing and each.killed_by)][at - 1 :: of]
    if options.unchanged:
        chosen = [replace(each, after=each.before) for each in chosen]
    load()
    survivors = 0
    for mutant in chosen:
        begin = time.monotonic()
        check = mutant.killed_by
        look = partial(searched, mutant, options.search) if options.search else partial(noticed, check)
        found = in_child(mutant, look, options.cpu)
        survivors += found in ("", LATE)
        print(f"{mutant.name:44} {found or 'SURVIVES ' + check} {time.monotonic() - begin:.0f} s", flush=True)
        if options.write and found not in ("", LATE):
            found = found.replace(f"{ROOT}/", "")
            write([replace(each, killed_by=found) if each.name == mutant.name else each for each in mutants()])
    print(f"{len(chosen)} mutants, {survivors} not noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
