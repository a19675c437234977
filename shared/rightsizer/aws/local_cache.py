"""What a scan need not ask twice, in a folder of the user: configurations, models and closed days of metrics.

None of these can change. How an endpoint stands is believed for a day while a listing has its times unchanged, as the
stack's own memory does, and never of one whose instances a policy may move. Tags, autoscaling, prices and permissions
are never kept. The folder belongs to one account, Region and role; its files are readable by the user alone. One that
others own or can write, that is no plain file, or that was written later than now is not believed. Every failure is a
cache miss.
"""

import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar

from rightsizer import wire
from rightsizer.aws.endpoint_memory import KEPT_DAYS, KnownEndpoint, row_format
from rightsizer.aws.s3 import FORGET, merge_usage, pack_usage, unpack_usage
from rightsizer.domain.usage import KeptUsage
from rightsizer.errors import RightsizerError
from rightsizer.settings import user_cache
from rightsizer.telemetry import logger

STANDS = timedelta(days=1)
"""How long the state of an endpoint is believed whose times stay as they were listed."""
LAYOUT = 2
"""Raised where the file around a document changes."""
OTHERS = 0o022
"""Write permission of the group and of everybody."""
IS_POSIX = os.name == "posix"
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Open no symbolic link, and do not wait for the writer of a pipe."""
SAFE = re.compile(r"[A-Za-z0-9-]+")
"""Names of endpoints (SageMaker API reference, EndpointName)."""
OWN_PAGES = 1 << 30
"""Size of a fleet in which hardly two endpoints share a page of daily usage: locally each has a file of its own."""


def cache_folder(account: str, region: str, role: str) -> Path:
    """Folder of one account, Region and role below the user's cache folder."""
    return Path(user_cache()) / "rightsizer" / f"{account}-{region}-{hashlib.sha256(role.encode()).hexdigest()[:12]}"


class LocalCache:
    """Keeps endpoints and daily usage (port `DailyUsageStore`) as private files of a folder."""

    tells_state: ClassVar[bool] = False
    """What is loaded may say nothing of how an endpoint stands: then its description is empty."""

    def __init__(self, folder: Path, clock: Callable[[], datetime], *, refresh: bool = False) -> None:
        self.folder = folder
        self._clock = clock
        self._refresh = refresh
        self.used = 0
        """Endpoints whose configuration was not asked for."""
        self.oldest: datetime | None = None
        """When the oldest of them was read."""
        self._read_at: dict[str, datetime] = {}
        """When the configuration of each loaded endpoint was read, by name."""
        self._told: set[str] = set()
        self._forget_old()

    def load_known(self, names: Collection[str]) -> Mapping[str, KnownEndpoint]:
        """Kept endpoints by name, under the times of their endpoint; without their state where that is too old."""
        found: dict[str, KnownEndpoint] = {}
        for name in names:
            body = self._read(f"endpoints/{name}.json") if SAFE.fullmatch(name) else None
            if body is None:
                continue
            try:
                outer = json.loads(body)
                kept_at = datetime.fromisoformat(outer["kept_at"])
                age = self._clock() - kept_at
                if outer["format"] != _format() or not timedelta(0) <= age <= timedelta(days=KEPT_DAYS):
                    continue
                stood = self._clock() - datetime.fromisoformat(outer["stood_at"])
                known_endpoint = wire.load_stored(KnownEndpoint, outer["doc"])
            except (ValueError, KeyError, TypeError, RecursionError, RightsizerError) as error:
                self._warn("local cache corrupt", self.folder / f"endpoints/{name}.json", error)
                continue
            if known_endpoint.ref.name != name:
                continue
            found[name] = known_endpoint if timedelta(0) <= stood <= STANDS else replace(known_endpoint, described={})
            self._read_at[name] = kept_at
            self.used += 1
            self.oldest = min(self.oldest or kept_at, kept_at)
        return found

    def keep(self, known_endpoints: Sequence[KnownEndpoint]) -> None:
        """Keep these endpoints; one that was loaded keeps the age of its configuration."""
        now = self._clock()
        for known_endpoint in known_endpoints:
            read_at = self._read_at.get(known_endpoint.ref.name, now)
            body = {"format": _format(), "kept_at": read_at.isoformat(), "stood_at": now.isoformat()}
            body["doc"] = wire.dump_stored(known_endpoint)
            self._write(f"endpoints/{known_endpoint.ref.name}.json", json.dumps(body).encode())

    def load(self, page: str) -> Sequence[KeptUsage]:
        """Usage stored under `page`; nothing for a missing or corrupt page."""
        body = self._read(f"usage/{page}.json.gz")
        return () if body is None else unpack_usage(body, page)

    def save(self, page: str, kept: Sequence[KeptUsage]) -> None:
        """Merge these into the page."""
        self._write(f"usage/{page}.json.gz", pack_usage(merge_usage(self.load(page), kept)))

    def _read(self, key: str) -> bytes | None:
        if self._refresh:
            return None
        path = self.folder / key
        try:
            with os.fdopen(os.open(path, os.O_RDONLY | NO_LINK), "rb") as file:
                seen = os.fstat(file.fileno())
                if not stat.S_ISREG(seen.st_mode) or (IS_POSIX and not _is_ours_alone(seen)):
                    self._warn("local cache not believed: no plain file that this user alone can write", path)
                    return None
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn("local cache not read", path, error)
            return None

    def _write(self, key: str, body: bytes) -> None:
        """Write a whole file, readable by the user alone from its first byte on; a failure leaves nothing behind."""
        path = self.folder / key
        unfinished: Path | None = None
        try:
            for folder in (self.folder.parent, self.folder, *reversed(path.relative_to(self.folder).parents[:-1])):
                (self.folder / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(".part", f"{path.name}.", path.parent)
            unfinished = Path(name)
            with os.fdopen(number, "wb") as file:
                file.write(body)
            unfinished.replace(path)
        except OSError as error:
            self._warn("local cache not written", path, error)
            if unfinished is not None:
                unfinished.unlink(missing_ok=True)

    def _warn(self, what: str, path: Path, problem: Exception | None = None) -> None:
        """Say it of the first file alone: what ails one ails a thousand."""
        if what not in self._told:
            self._told.add(what)
            logger.warning(what, extra={"path": str(path), "problem": str(problem or "")})

    def _forget_old(self) -> None:
        """Remove files that no scan has written for longer than CloudWatch keeps what they hold."""
        before = (self._clock() - FORGET).timestamp()
        for path in self.folder.glob("*/**/*"):
            try:
                if path.is_file() and path.stat().st_mtime < before:
                    path.unlink()
            except OSError as error:
                self._warn("local cache not cleared", path, error)


def _format() -> str:
    """Names what a file holds; another text where an earlier release kept other things."""
    return f"{LAYOUT}-{row_format()}"


def _is_ours_alone(seen: os.stat_result) -> bool:
    """Whether the user owns a file, and nobody else can write it."""
    return seen.st_uid == os.geteuid() and not seen.st_mode & OTHERS
