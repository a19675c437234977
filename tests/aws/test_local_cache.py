"""The cache of a scan in hostile hands: whatever happened to a file or a disk costs calls, and never an answer."""

import errno
import json
import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from rightsizer.aws.configuration import ConfiguredVariant, EndpointConfiguration
from rightsizer.aws.endpoint_memory import KnownEndpoint
from rightsizer.aws.local_cache import LocalCache
from rightsizer.aws.models import ModelFacts
from rightsizer.domain.endpoint import EndpointKind, EndpointRef
from rightsizer.domain.usage import KeptUsage

NOW = datetime(2026, 11, 20, tzinfo=UTC)
MADE = NOW - timedelta(days=30)
PAGE = "1/0001"
posix = pytest.mark.skipif(os.name != "posix", reason="owners, links and pipes are POSIX's")


def known(name: str) -> KnownEndpoint:
    variant = ConfiguredVariant("AllTraffic", "m", "ml.g5.2xlarge", 1.0, "")
    kinds = frozenset({EndpointKind.REAL_TIME})
    configuration = EndpointConfiguration("c", MADE, (variant,), kinds, (), "", False, False)
    models = {"m": ModelFacts(("image",), 1, False, False, False)}
    return KnownEndpoint(EndpointRef("1", "eu-west-1", name), MADE, MADE, {}, configuration, models, scaled=True)


USED = KeptUsage("chat", "AllTraffic", MADE, date(2026, 11, 6), date(2026, 11, 20), ())


def cache(folder: Path) -> LocalCache:
    return LocalCache(folder, lambda: NOW)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an account with two endpoints, and a page of usage."""
    kept = cache(tmp_path / "account")
    kept.keep([known("chat"), known("search")])
    kept.save(PAGE, [USED])
    assert set(cache(kept.folder).load_known(["chat", "search"])) == {"chat", "search"}
    assert tuple(cache(kept.folder).load(PAGE)) == (USED,)
    return kept.folder


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def nested(path: Path) -> None:
    path.write_bytes(b"[" * 200_000)


def linked(path: Path) -> None:
    path.rename(path.with_suffix(".elsewhere"))
    path.symlink_to(path.with_suffix(".elsewhere"))


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def writable(path: Path) -> None:
    path.chmod(0o620)


@posix
@pytest.mark.parametrize("spoil", [cut, empty, nested, linked, a_folder, a_pipe, writable])
def test_a_file_that_is_not_as_it_was_written_is_a_miss_and_is_told_once(
    spoil: Callable[[Path], None], folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for path in files(folder):
        spoil(path)
    found = cache(folder)
    with caplog.at_level(logging.WARNING):
        assert found.load_known(["chat", "search"]) == {}
    assert len(caplog.records) == 1
    assert tuple(found.load(PAGE)) == ()
    assert (found.used, found.oldest) == (0, None)


@pytest.mark.parametrize("changed", [{"format": "1-other"}, {"kept_at": (NOW + timedelta(hours=1)).isoformat()}])
def test_what_another_version_or_a_later_clock_wrote_is_a_miss(changed: dict[str, str], folder: Path) -> None:
    path = folder / "endpoints/chat.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    assert set(cache(folder).load_known(["chat", "search"])) == {"search"}


def test_a_file_under_the_name_of_another_endpoint_is_a_miss(folder: Path) -> None:
    (folder / "endpoints/search.json").replace(folder / "endpoints/chat.json")
    assert cache(folder).load_known(["chat", "search"]) == {}


def test_a_name_is_no_path(folder: Path) -> None:
    (folder / "chat.json").write_bytes((folder / "endpoints/chat.json").read_bytes())
    assert cache(folder).load_known(["../chat"]) == {}


@posix
def test_files_of_another_user_are_a_miss(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    somebody = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: somebody)
    assert cache(folder).load_known(["chat", "search"]) == {}
    assert tuple(cache(folder).load(PAGE)) == ()


@pytest.mark.parametrize("problem", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("where", ["replace", "mkdir"])
def test_a_full_or_read_only_disk_is_told_once_and_leaves_no_part_of_a_file(
    problem: int, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(problem, os.strerror(problem))

    kept = cache(tmp_path / "account")
    monkeypatch.setattr(Path, where, refuse)
    with caplog.at_level(logging.WARNING):
        kept.keep([known("chat"), known("search")])
    assert [(record.message, os.strerror(problem) in record.problem) for record in caplog.records] == [  # type: ignore[attr-defined]
        ("local cache not written", True)
    ]
    assert files(tmp_path) == []


def test_two_scans_at_once_leave_whole_files(folder: Path) -> None:
    def keep(_: int) -> None:
        mine = cache(folder)
        for _round in range(30):
            mine.keep([known("chat")])
            mine.save(PAGE, [USED])
            assert set(mine.load_known(["chat"])) == {"chat"}
            assert tuple(mine.load(PAGE)) == (USED,)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(keep, range(2)))
    assert [path for path in files(folder) if path.suffix == ".part"] == []
