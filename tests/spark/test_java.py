"""The Java of the ``java`` extra, for machines that have none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kraftlog.spark import java


def fake(folder: Path, text: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return program


def test_version(tmp_path: Path):
    assert java.java_version(str(fake(tmp_path / "a", "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2"))) == 17
    assert java.java_version(str(fake(tmp_path / "b", "echo 'java version \"1.8.0_392\"' >&2"))) == 1
    assert java.java_version(str(fake(tmp_path / "c", "exit 1"))) is None
    assert java.java_version("nowhere") is None


def test_wrapper_leaves_out_the_module(tmp_path: Path):
    program = fake(tmp_path, 'for a do printf "<%s>" "$a"; done')
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(java._WRAPPER.format(java=program))
    wrapper.chmod(0o755)
    command = f"{wrapper} -cp 'a b' --add-modules=jdk.incubator.vector Main ''"
    assert os.popen(command).read() == "<-cp><a b><Main><>"


def test_old_java_is_not_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake(tmp_path, "echo 'java version \"11.0.2\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert not java.system_java_is_enough()


@pytest.mark.parametrize(
    ("home", "named", "expected"),
    [
        ("home", "", "home/.cache"),
        ("home", "cache", "cache"),
        ("home", "./not absolute", "home/.cache"),
        ("file/home", "", None),
        ("home", "file/cache", None),
    ],
)
def test_where_the_wrapper_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str, named: str, expected: str | None
):
    """Nothing can be made below a file: a folder of its own takes the place of the cache."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / home))
    monkeypatch.setenv("XDG_CACHE_HOME", named if named.startswith(".") or not named else str(tmp_path / named))
    folder = java._folder_of_the_user()
    assert folder.is_dir()
    if expected is None:
        assert folder.name.startswith("kraftlog-")
        assert not list(folder.iterdir())
    else:
        assert folder == tmp_path / expected
