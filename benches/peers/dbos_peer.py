"""DBOS: a library on PostgreSQL 15."""

import os
import shutil
from pathlib import Path

from common import HERE, Unavailable, free_port, is_open, run, spawn, until
from install import postgres
from peer import Peer

POSTGRES = {
    "synchronous_commit": "on",
    "fsync": "on",
    "shared_buffers": "512MB",
    "max_connections": "200",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "4GB",
    "log_min_messages": "fatal",
}


def as_postgres(command: list[str | Path]) -> list[str | Path]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return command
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]


SETTING = (
    "PostgreSQL over a Unix socket, `fsync=on`, `synchronous_commit=on`, `wal_level=minimal`, 512 MB of `shared_buffers`; "
    "a step per iteration; 50 connections"
)


class Dbos(Peer):
    """What both libraries need: a PostgreSQL of their own."""

    database = "postgresql://postgres@localhost/peers"
    """The address of the database without its socket and port."""

    def library(self) -> str:
        """The version of the library."""
        raise NotImplementedError

    def install(self) -> None:
        self.programs = postgres()

    def describe(self) -> tuple[str, str]:
        server = run([self.programs / "postgres", "--version"]).split()[2]
        return f"dbos {self.library()}, PostgreSQL {server}", SETTING

    def prepare(self) -> None:
        super().prepare()
        self.port = free_port()
        if os.geteuid() == 0:
            shutil.chown(self.data, "postgres", "postgres")
        command = [self.programs / "initdb", "-D", self.data / "postgres", "-U", "postgres", "-A", "trust"]
        run(as_postgres([*command, "-E", "UTF8", "--no-locale"]), cwd="/")

    def arguments(self) -> list[str]:
        address = f"{self.database}?host={self.data}&port={self.port}"
        return [*super().arguments(), address]

    def start_servers(self) -> None:
        command: list[str | Path] = [self.programs / "postgres", "-D", self.data / "postgres"]
        settings = {"port": self.port, "unix_socket_directories": self.data, "listen_addresses": "127.0.0.1", **POSTGRES}
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        server = spawn(as_postgres(command), self.log, cwd="/")
        self.processes.append(server)
        until(lambda: server.poll() is not None or self.is_ready(), 60, "PostgreSQL was not ready")

    def is_ready(self) -> bool:
        """Whether PostgreSQL accepts connections: it listens before its recovery has ended."""
        command = [self.programs / "pg_isready", "-q", "-U", "postgres", "-h", self.data, "-p", str(self.port)]
        try:
            run(command)
        except Unavailable:
            return False
        return is_open(self.port)


class DbosPython(Dbos):
    """DBOS Transact for Python: a thread for each loop."""

    name = "DBOS (Python)"
    worker = "dbos_worker.py"
    database = "postgresql+psycopg://postgres@/peers"

    def install(self) -> None:
        super().install()
        run([self.setup.python, "-c", "import dbos, psycopg"])

    def library(self) -> str:
        code = "from importlib.metadata import version; print(version('dbos'))"
        return run([self.setup.python, "-c", code]).strip()


class DbosRust(Dbos):
    """DBOS Transact for Rust, compiled with optimisation."""

    name = "DBOS (Rust)"

    def install(self) -> None:
        super().install()
        self.target = self.setup.folder / "dbos"
        build = ["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", HERE / "dbos_rust" / "Cargo.toml"]
        run([*build, "--target-dir", self.target])

    def library(self) -> str:
        lock = (HERE / "dbos_rust" / "Cargo.lock").read_text()
        return lock.split('name = "dbos"\nversion = "')[1].split('"')[0]

    def command(self) -> list[str | Path]:
        return [self.target / "release" / "dbos-peer"]
