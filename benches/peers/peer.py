"""What a peer is: something that does the works, and that can be killed and started again."""

import json
import select
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

from common import HERE, Setup, Unavailable, end, spawn


LONGEST = 900
"""Seconds after which a work counts as failed."""


class Peer:
    """A peer whose worker process does the works; a subclass adds the servers that it needs."""

    name = ""
    worker = ""
    """The file of the worker, next to this one."""
    misses: dict[str, str] = {}
    """Works that the peer does not have, and why."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.data = setup.folder / "data" / self.name.replace(" ", "-")
        self.log = setup.folder / "log" / f"{self.name.replace(' ', '-')}.log"
        self.processes: list[subprocess.Popen] = []
        self.client: subprocess.Popen | None = None

    def install(self) -> None:
        """Make the programs available; `Unavailable` says why not."""

    def describe(self) -> tuple[str, str]:
        """The version, and the configuration with what makes it durable."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Begin with an empty data directory."""
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(parents=True)

    def arguments(self) -> list[str]:
        """What the worker is started with."""
        return [str(self.data), self.setup.server]

    def command(self) -> list[str | Path]:
        """The worker's command, without its arguments."""
        return [self.setup.python, HERE / self.worker]

    def start_servers(self) -> None:
        """Start what the worker needs. It need not be ready: a restart is faster that way."""

    def start(self) -> None:
        """Start everything and wait until works can be given."""
        self.start_servers()
        command = [*self.command(), *self.arguments()]
        self.client = spawn(command, self.log, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.processes.append(self.client)
        self.receive(60)

    def receive(self, seconds: float) -> dict[str, Any]:
        """The worker's next line."""
        if not select.select([self.client.stdout], [], [], seconds)[0]:
            raise Unavailable(f"no answer of the worker within {seconds:.0f} s")
        line = self.client.stdout.readline()
        if not line:
            last = self.log.read_text(errors="replace").strip().splitlines()[-1:] or ["no message"]
            raise Unavailable(f"the worker ended: {last[0][:200]}")
        return json.loads(line)

    def work(self, work: str, **sizes: Any) -> tuple[float, int]:
        """Do a work to its end: its seconds, and how much of it the store has."""
        self.client.stdin.write(json.dumps({"work": work, "sizes": sizes}) + "\n")
        self.client.stdin.flush()
        answer = self.receive(LONGEST)
        if "error" in answer:
            raise Unavailable(answer["error"])
        return answer["seconds"], answer["done"]

    def begin(self, key: str) -> None:
        """Start a loop that polls a key without an end."""
        self.work("begin", key=key)

    def resume(self, key: str) -> None:
        """Continue after a restart. Engines do so themselves."""

    def roots(self) -> list[int]:
        """The processes whose memory counts."""
        return [process.pid for process in self.processes]

    def kill(self) -> None:
        """SIGKILL to every process of the peer, its database included."""
        self.finish(signal.SIGKILL)

    def stop(self) -> None:
        """Stop in an orderly way."""
        self.finish(signal.SIGTERM)

    def finish(self, how: signal.Signals) -> None:
        """End all processes: at once, or the worker before the servers that it uses."""
        groups = [self.processes] if how == signal.SIGKILL else [[one] for one in reversed(self.processes)]
        for group in groups:
            end(group, how)
        self.processes = []
