"""Temporal: the development server of its command line, and a worker in Python."""

from common import free_port, run, spawn
from peer import Peer

SETTINGS = [
    # Limits that would slow this work down in a server of one machine.
    "frontend.namespaceRPS=100000",
    "frontend.rps=100000",
    "frontend.namespaceCount=100000",
    "history.rps=100000",
    "matching.rps=100000",
    # The server has one shard, and a shard reads its queues 20 times a second by default.
    "history.transferProcessorMaxPollRPS=100000",
    "history.timerProcessorMaxPollRPS=100000",
    "history.visibilityProcessorMaxPollRPS=100000",
    "system.enableActivityEagerExecution=true",
]


class Temporal(Peer):
    """A server with its database in SQLite."""

    name = "Temporal"
    worker = "temporal_worker.py"

    def install(self) -> None:
        self.program = self.setup.python.parent / "temporal"
        run([self.program, "--version"])

    def describe(self) -> tuple[str, str]:
        server = run([self.program, "--version"]).strip().removeprefix("temporal version ")
        sdk = run([self.setup.python, "-c", "import temporalio.service as s; print(s.__version__)"]).strip()
        setting = (
            "dev server with `--db-filename`, SQLite with `journal_mode=WAL` and `synchronous=FULL`; "
            "an activity per iteration, eager; no sandbox; continue-as-new when the server suggests it"
        )
        return f"CLI {server}, Python SDK {sdk}", setting

    def prepare(self) -> None:
        super().prepare()
        self.port = free_port()

    def arguments(self) -> list[str]:
        return [*super().arguments(), f"127.0.0.1:{self.port}"]

    def start_servers(self) -> None:
        command = [self.program, "server", "start-dev", "--headless", "--port", str(self.port)]
        command += ["--db-filename", str(self.data / "temporal.db"), "--log-level", "error"]
        command += ["--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=2"]
        for setting in SETTINGS:
            command += ["--dynamic-config-value", setting]
        self.processes.append(spawn(command, self.log))
