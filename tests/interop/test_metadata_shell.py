"""kraftlog's shell shows the paths and the contents that Kafka's own metadata shell shows."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path

import metadata_shell
import pytest
from jvm import Jvm

from golden_files import GOLDEN
from image_tables import OFFSETS, KnownImage, known_image
from kraftlog import MetadataLogWriter
from kraftlog.cli.shell import shell
from kraftlog.cli.shell_commands import run_line
from kraftlog.cli.shell_session import Session
from kraftlog.cli.shell_words import escaped
from kraftlog.metadata.secrets import PASSWORDS
from kraftlog.metadata.tree.configs import DEFAULT_ENTITY
from odd_metadata import EPOCH, TIMESTAMP, records

LEAST_FILES = 50
SECRETS = {"scram": 4, "delegationToken": 3}  # slashes in the path of a file
KEPT = GOLDEN.parent / "metadata" / "kafka_metadata_shell.json.gz"
LOG = GOLDEN / "metadata" / "log" / "__cluster_metadata-0"
DIRECTORIES = [
    *("/image/acls", "/image/cluster", "/image/configs", "/image/delegationToken", "/image/features"),
    *("/image/producerIds", "/image/provenance", "/image/scram", "/image/topics"),
]
GLOBS_AND_LISTS = [
    ["ls"],
    ["ls", "/", "/local"],
    ["ls", "/image/topics/*"],
    ["ls", "/image/{topics,cluster}", "/image/provenance"],
    ["ls", "/image/c??????"],
    ["ls", "image/./topics/../con*s"],
    ["cat", "/image/topics/byName/*/{0,id}"],
    ["tree", "/image/top*/byI?"],
    ["tree", "/image/features", "image/provenance"],
]


class Shells:
    """Kafka's shell and kraftlog's on the same image."""

    def __init__(self, java: Jvm, file: Path, image: KnownImage) -> None:
        self._java = java
        self._file = file
        self._image = image

    def kafka(self, *commands: Sequence[str]) -> list[list[str]]:
        return metadata_shell.run(self._java, self._file, commands)

    def redacted(self, paths: Sequence[str]) -> list[str]:
        return metadata_shell.redacted(self._java, self._file, paths)

    def kraftlog(self, *commands: Sequence[str], show_secrets: bool = True) -> list[list[str]]:
        return [self._run(command, show_secrets=show_secrets) for command in commands]

    def _run(self, command: Sequence[str], *, show_secrets: bool) -> list[str]:
        out, err = io.StringIO(), io.StringIO()
        session = Session(lambda _: self._image, out, err, show_secrets=show_secrets)
        run_line(session, " ".join(word if set("*?{") & set(word) else escaped(word) for word in command))
        assert not err.getvalue()
        return out.getvalue().splitlines()


@pytest.fixture(scope="module", params=[*map(str, OFFSETS), "odd"])
def case(request: pytest.FixtureRequest) -> str:
    """Name an offset of the golden log, or a log of odd records."""
    return str(request.param)


@pytest.fixture(scope="module")
def shells(java: Jvm, case: str, tmp_path_factory: pytest.TempPathFactory) -> Shells:
    """Kafka's shell takes a log as well as a snapshot: with it, the image is one that really was."""
    folder = tmp_path_factory.mktemp("shell")
    if case != "odd":
        metadata_shell.cut_log(LOG, int(case), folder / "cut.log")
        return Shells(java, folder / "cut.log", known_image(int(case)))
    return _odd(java, folder / "__cluster_metadata-0")


def _odd(java: Jvm, folder: Path) -> Shells:
    odd = records()
    values = [bytes.fromhex(json.loads(line)["record"]) for line in java.run("MetadataRecords", lines=odd)]
    with MetadataLogWriter(folder, EPOCH, clock=lambda: TIMESTAMP) as writer:
        writer.append(values)
    # a LEADER_CHANGE record stands before them
    return Shells(java, folder / f"{0:020}.log", KnownImage(odd, len(odd), EPOCH, TIMESTAMP))


def test_paths(shells: Shells) -> None:
    """The same paths in the same order; of quotas see below."""
    find = ["find", *DIRECTORIES, "/local"]
    assert shells.kraftlog(find) == shells.kafka(find)


def test_contents(shells: Shells) -> None:
    """What is in each file, one for one, and all of it as a tree."""
    trees = [["tree", directory] for directory in DIRECTORIES]
    assert shells.kraftlog(*trees) == shells.kafka(*trees)
    (paths,) = shells.kafka(["find", *DIRECTORIES])
    printed = shells.kafka(*(["cat", path] for path in paths))
    contents = {
        path: lines for path, lines in zip(paths, printed, strict=True) if lines != [f"cat: {path}: Is a directory"]
    }
    assert len(contents) > LEAST_FILES
    assert shells.kraftlog(*(["cat", path] for path in contents)) == list(contents.values())


def test_what_kafka_redacts(shells: Shells) -> None:
    """SCRAM credentials and delegation tokens, unless they are asked for."""
    (paths,) = shells.kafka(["find", "/image/scram", "/image/delegationToken"])
    secrets = [path for path in paths if path.count("/") == SECRETS[path.split("/")[2]]]
    assert shells.kraftlog(*(["cat", path] for path in secrets), show_secrets=False) == [
        [line] for line in shells.redacted(secrets)
    ]


def test_answers_that_were_kept(shells: Shells, case: str) -> None:
    """Those that tests without a Java compare with."""
    kept = json.loads(gzip.decompress(KEPT.read_bytes()))[case]
    find, tree = shells.kafka(["find", *DIRECTORIES], ["tree", "/image"])
    assert kept == {"find": find, "tree": tree}


def test_quotas(shells: Shells) -> None:
    """Entities with names; Kafka's shell fails at a default one, whose name there is empty."""
    every = ["ls", "/image/clientQuotas"]
    named = [name for name in shells.kafka(every)[0] if name]
    assert [name for name in shells.kraftlog(every)[0] if DEFAULT_ENTITY not in name] == named
    trees = [["tree", f"/image/clientQuotas/{name}"] for name in named]
    assert shells.kraftlog(*trees) == shells.kafka(*trees)


def test_globs_and_lists(shells: Shells) -> None:
    """The same places, listed alike."""
    assert shells.kraftlog(*GLOBS_AND_LISTS) == shells.kafka(*GLOBS_AND_LISTS)


@pytest.mark.sweep(5)
@pytest.mark.parametrize("offset", OFFSETS)
def test_image_that_kraftlog_reads(java: Jvm, tmp_path: Path, offset: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole way from the log's bytes: `kraftlog shell` at an offset, and Kafka's shell on the log cut there."""
    metadata_shell.cut_log(LOG, offset, tmp_path / "cut.log")
    expected = metadata_shell.run(java, tmp_path / "cut.log", [["tree", directory] for directory in DIRECTORIES])
    for directory, tree in zip(DIRECTORIES, expected, strict=True):
        arguments = [str(LOG), "--at", str(offset), "--show-secrets", "-c", f"tree {directory}"]
        with pytest.raises(SystemExit) as end:
            shell(arguments, standalone_mode=False)
        assert end.value.code == 0
        assert capsys.readouterr().out.splitlines() == tree


def test_passwords(java: Jvm) -> None:
    """The configs that hold passwords or keys are those of Kafka's definitions."""
    assert sorted(PASSWORDS) == java.run("Passwords")
