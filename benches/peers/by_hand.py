"""Peers without an engine: what a script does by hand. `floors.py` is their worker."""

import platform
import sqlite3
import sys
from pathlib import Path

from common import HERE
from peer import Peer

NO_TIMERS = "no index of due times: a script waits in its process"


class ByHand(Peer):
    """A Python process that stores the state of its loops itself."""

    worker = "floors.py"
    kind = ""

    def arguments(self) -> list[str]:
        return [*super().arguments(), self.kind]

    def command(self) -> list[str | Path]:
        return [sys.executable, HERE / self.worker]

    def resume(self, key: str) -> None:
        self.begin(key)


class PythonLoop(ByHand):
    """A loop that replaces a file after each iteration."""

    name = "Python with fsync"
    kind = "checkpoints"
    misses = {"sleepers": NO_TIMERS}

    def describe(self) -> tuple[str, str]:
        setting = "a JSON file per loop: write, `fsync`, rename, `fsync` of the directory; 32 threads for many loops"
        return f"Python {platform.python_version()}", setting


class SqliteLoop(ByHand):
    """A loop that commits a row after each iteration."""

    name = "SQLite"
    kind = "database"

    def describe(self) -> tuple[str, str]:
        setting = "`journal_mode=WAL`, `synchronous=FULL`; many loops share a transaction; rows of pages are in the database"
        return f"SQLite {sqlite3.sqlite_version}, Python {platform.python_version()}", setting


class AppendedFile(ByHand):
    """A loop that appends a line after each iteration: the floor of the disk."""

    name = "appended file"
    kind = "appended"
    misses = {"sleepers": NO_TIMERS}

    def describe(self) -> tuple[str, str]:
        setting = "a line per iteration and `fdatasync`; many loops share a sync"
        return f"Python {platform.python_version()}", setting
