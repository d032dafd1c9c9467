"""The worker of the three peers without an engine: `floors.py FOLDER SERVER KIND`.

Each is what a careful author writes by hand: nothing is faster on this disk, and nothing else of an
engine is there.
"""

import asyncio
import json
import os
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from common import Getter, answer_works, append_rows

THREADS = 32
"""Threads that write the checkpoints of many loops, so that the disk can join their syncs."""


class Store(Protocol):
    """Where the state of loops is durable."""

    def save(self, states: dict[str, Any]) -> None:
        """Make the states of some loops durable."""

    def load(self, name: str) -> Any:
        """The stored state of a loop, or None."""

    def count(self, prefix: str) -> int:
        """How many iterations of the loops with a prefix are stored."""


class Checkpoints:
    """A file per loop, replaced by rename: the file is synced before it and the directory after it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.directory = os.open(folder, os.O_RDONLY)
        self.pool = ThreadPoolExecutor(THREADS)

    def save(self, states: dict[str, Any]) -> None:
        if len(states) == 1:
            self.save_one(*next(iter(states.items())))
        else:
            list(self.pool.map(self.save_one, states.keys(), states.values()))

    def save_one(self, name: str, state: Any) -> None:
        path = self.folder / name
        file = os.open(f"{path}.new", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
        os.write(file, json.dumps(state).encode())
        os.fsync(file)
        os.close(file)
        os.rename(f"{path}.new", path)
        os.fsync(self.directory)

    def load(self, name: str) -> Any:
        path = self.folder / name
        return json.loads(path.read_text()) if path.exists() else None

    def count(self, prefix: str) -> int:
        return sum(json.loads(path.read_text())["n"] for path in self.folder.glob(f"{prefix}*"))


class Database:
    """SQLite: a row per iteration and the state of each loop, one transaction for all loops."""

    def __init__(self, folder: Path) -> None:
        self.database = sqlite3.connect(folder / "loops.db", isolation_level=None, check_same_thread=False)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA synchronous = FULL")
        for table in [
            "iterations (loop TEXT, n INTEGER, at REAL, PRIMARY KEY (loop, n)) WITHOUT ROWID",
            "loops (loop TEXT PRIMARY KEY, state TEXT) WITHOUT ROWID",
            "rows (id INTEGER PRIMARY KEY, row TEXT)",
            "sleepers (run INTEGER PRIMARY KEY, due REAL, state TEXT)",
        ]:
            self.database.execute(f"CREATE TABLE IF NOT EXISTS {table}")
        self.database.execute("CREATE INDEX IF NOT EXISTS due ON sleepers (due)")

    def save(self, states: dict[str, Any]) -> None:
        self.database.execute("BEGIN IMMEDIATE")
        now = time.time()
        rows = [(name, state["n"], now) for name, state in states.items()]
        self.database.executemany("INSERT OR REPLACE INTO iterations VALUES (?, ?, ?)", rows)
        rows = [(name, json.dumps(state)) for name, state in states.items()]
        self.database.executemany("INSERT OR REPLACE INTO loops VALUES (?, ?)", rows)
        self.database.execute("COMMIT")

    def load(self, name: str) -> Any:
        row = self.database.execute("SELECT state FROM loops WHERE loop = ?", (name,)).fetchone()
        return row and json.loads(row[0])

    def count(self, prefix: str) -> int:
        query = "SELECT count(*) FROM iterations WHERE loop GLOB ?"
        return self.database.execute(query, (f"{prefix}*",)).fetchone()[0]


class Appended:
    """One file: a line per iteration, one `fdatasync` for all loops. The last line of a loop is its state."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "loops.jsonl"
        self.file = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)

    def save(self, states: dict[str, Any]) -> None:
        now = time.time()
        lines = [json.dumps({"loop": name, "at": now, "state": state}) + "\n" for name, state in states.items()]
        os.write(self.file, "".join(lines).encode())
        os.fdatasync(self.file)

    def lines(self) -> list[Any]:
        """What is stored; a line that a crash cut is not."""
        return [json.loads(line) for line in self.path.read_text().split("\n")[:-1]]

    def load(self, name: str) -> Any:
        states = [line["state"] for line in self.lines() if line["loop"] == name]
        return states[-1] if states else None

    def count(self, prefix: str) -> int:
        return sum(line["loop"].startswith(prefix) for line in self.lines())


KINDS: dict[str, type] = {"checkpoints": Checkpoints, "database": Database, "appended": Appended}


class Works:
    """The works on one of the stores."""

    def __init__(self, folder: Path, server: str, kind: str) -> None:
        self.folder = folder
        self.server = server
        self.store = KINDS[kind](folder)
        self.made = 0

    def name(self, work: str) -> str:
        """A name that no earlier work has."""
        self.made += 1
        return f"{work}-{self.made}-"

    async def loop(self, count: int) -> tuple[float, int]:
        """One loop: each iteration is durable before the next."""
        name = self.name("loop")
        begin = time.monotonic()
        for n in range(1, count + 1):
            self.store.save({name: {"n": n}})
        return time.monotonic() - begin, self.store.count(name)

    async def loops(self, runs: int, count: int) -> tuple[float, int]:
        """Many loops: the iterations of all loops share a sync, as far as the store can."""
        prefix = self.name("loops")
        names = [f"{prefix}{run}" for run in range(runs)]
        begin = time.monotonic()
        for n in range(1, count + 1):
            self.store.save({name: {"n": n} for name in names})
        return time.monotonic() - begin, self.store.count(prefix)

    async def polls(self, key: str, count: int) -> tuple[float, int]:
        """Poll until the job is complete: each answer is durable before the next request."""
        begin = time.monotonic()
        self.poll(key, count)
        return time.monotonic() - begin, self.store.count(key)

    def poll(self, key: str, count: int) -> None:
        """Poll a key from where the store has it."""
        getter = Getter(self.server)
        state = self.store.load(key) or {"n": 0}
        while state.get("status") != "complete":
            answer = getter.get(f"/poll/{key}?until={count}")
            state = {"n": state["n"] + 1, "status": answer["status"]}
            self.store.save({key: state})

    async def begin(self, key: str) -> tuple[float, int]:
        """Poll without an end, in the background; after a restart it continues."""
        threading.Thread(target=self.poll, args=(key, 0), daemon=True).start()
        return 0.0, 0

    async def sleepers(self, count: int) -> tuple[float, int]:
        """Rows with a due time, each durable before the next."""
        database = self.store.database
        begin = time.monotonic()
        for run in range(count):
            database.execute("INSERT INTO sleepers VALUES (?, ?, ?)", (run, time.time() + 43200, "{}"))
        seconds = time.monotonic() - begin
        return seconds, database.execute("SELECT count(*) FROM sleepers").fetchone()[0]

    async def pages(self, path: str, count: int) -> tuple[float, int]:
        """Read all pages; the rows and the position are durable before the next page."""
        getter = Getter(self.server)
        begin = time.monotonic()
        state: dict[str, Any] = {"n": 0, "length": 0}
        number: int | None = 1
        while number is not None:
            page = getter.get(f"/page?number={number}&pages={count}")
            state = self.keep(path, state, page["items"])
            number = page["next"]
        seconds = time.monotonic() - begin
        if isinstance(self.store, Database):
            return seconds, self.store.database.execute("SELECT count(*) FROM rows").fetchone()[0]
        return seconds, len(Path(path).read_text().splitlines())

    def keep(self, path: str, state: dict[str, Any], rows: list[Any]) -> dict[str, Any]:
        """Store the rows of a page together with the position, in as few syncs as the store allows."""
        if isinstance(self.store, Database):
            database = self.store.database
            database.execute("BEGIN IMMEDIATE")
            values = [(row["id"], json.dumps(row)) for row in rows]
            database.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", values)
            new = {"n": state["n"] + 1, "length": 0}
            database.execute("INSERT OR REPLACE INTO loops VALUES (?, ?)", (path, json.dumps(new)))
            database.execute("COMMIT")
            return new
        length = append_rows(path, state["length"], rows)
        new = {"n": state["n"] + 1, "length": length}
        if isinstance(self.store, Checkpoints):
            self.store.save({"pages": new})
        # An appended file needs no checkpoint: its rows say which page is next.
        return new


def main() -> None:
    works = Works(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
    names = ["loop", "loops", "polls", "begin", "sleepers", "pages"]
    asyncio.run(answer_works({name: getattr(works, name) for name in names}))


if __name__ == "__main__":
    main()
