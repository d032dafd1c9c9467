"""Restate: its server, and services in Python."""

from pathlib import Path

from common import free_port, run, spawn
from install import npm_package
from peer import Peer


class Restate(Peer):
    """A server with its log and state in RocksDB."""

    name = "Restate"
    worker = "restate_worker.py"

    def install(self) -> None:
        folder = npm_package(self.setup.folder, "@restatedev/restate-server")
        # The script of the package only starts this program.
        programs = sorted(Path(folder).glob("node_modules/@restatedev/restate-server-*/bin/restate-server"))
        self.program = programs[0]
        run([self.program, "--version"])

    def describe(self) -> tuple[str, str]:
        server = run([self.program, "--version"]).strip().removeprefix("restate-server ")
        code = "from importlib.metadata import version; print(version('restate-sdk'))"
        sdk = run([self.setup.python, "-c", code]).strip()
        setting = (
            "one node, 4 partitions, replicated log with one copy, RocksDB with synced WAL (`rocksdb-disable-wal-fsync = false`, the default); "
            "a `run` step per iteration; services on Hypercorn over HTTP/2"
        )
        return f"server {server}, Python SDK {sdk}", setting

    def prepare(self) -> None:
        super().prepare()
        self.ports = [free_port() for _ in range(4)]

    def arguments(self) -> list[str]:
        endpoint, ingress, admin, _ = map(str, self.ports)
        return [*super().arguments(), endpoint, ingress, admin]

    def start_servers(self) -> None:
        _, ingress, admin, node = self.ports
        settings = {
            "RESTATE_BASE_DIR": str(self.data),
            # Fewer partitions than the default of 24 are faster on few cores: their commits share a sync.
            "RESTATE_DEFAULT_NUM_PARTITIONS": "4",
            "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
            "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
            "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
            "RESTATE_ADVERTISED_ADDRESS": f"http://127.0.0.1:{node}",
            "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_DISABLE_TELEMETRY": "true",
            "RESTATE_LOG_FILTER": "error",
            "RESTATE_WORKER__INVOKER__INACTIVITY_TIMEOUT": "1s",
        }
        self.processes.append(spawn([self.program], self.log, env=settings))
