"""Windlass: its server, and a client that uses its HTTP API as any other program does."""

import asyncio
import time
from typing import Any

from common import Connection, Unavailable, free_port, is_open, run, send_all, spawn, until
from peer import Peer

CONNECTIONS = 32
"""Connections of the client that starts many runs."""

LOOP = """
inputs: {count: {type: integer}}
variables: {n: 0}
actions:
  loop:
    type: until
    condition: "@equals(variables('n'), inputs('count'))"
    limit: {count: 10000000, timeout: 12h}
    actions:
      step: {type: incrementVariable, name: n, value: 1}
outputs: {n: "@variables('n')"}
"""

POLLS = """
inputs: {uri: {type: string}}
actions:
  loop:
    type: doUntil
    condition: "@equals(body('poll').status, 'complete')"
    limit: {count: 10000000, timeout: 12h}
    actions:
      poll: {type: http, inputs: {uri: "@inputs('uri')"}}
outputs: {n: "@actions('loop').outputs.iterations"}
"""

SLEEPER = """
actions:
  wait: {type: wait, interval: 12h}
"""

PAGES = """
inputs: {server: {type: string}, pages: {type: integer}, path: {type: string}}
variables: {number: 1}
actions:
  loop:
    type: doUntil
    condition: "@equals(variables('number'), null)"
    limit: {count: 10000000, timeout: 12h}
    actions:
      fetch: {type: http, inputs: {uri: "http://@{inputs('server')}/page?number=@{variables('number')}&pages=@{inputs('pages')}"}}
      store: {type: appendFile, inputs: {path: "@inputs('path')", rows: "@body('fetch').items"}}
      next: {type: setVariable, name: number, value: "@body('fetch').next"}
outputs: {n: "@actions('loop').outputs.iterations"}
"""

WORKFLOWS = {"loop": LOOP, "polls": POLLS, "sleeper": SLEEPER, "pages": PAGES}


class Windlass(Peer):
    """A server with one of the stores."""

    store = ""
    setting = ""

    def install(self) -> None:
        run([self.setup.windlass, "--version"])

    def describe(self) -> tuple[str, str]:
        version = run([self.setup.windlass, "--version"]).split()[1]
        return f"windlass {version}", f"`serve --store {self.store}`: {self.setting}; a checkpoint per iteration; clients over HTTP"

    def prepare(self) -> None:
        super().prepare()
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server. Its runs continue at once, so a restart needs nothing more."""
        command = [self.setup.windlass, "serve", "--state", self.data / "state", "--store", self.store]
        command += ["--listen", self.address, "--allow-private-network", "--allow-files", "--max-count", "100000000"]
        server = spawn(command, self.log, env={"WINDLASS_LOG": "error"})
        self.processes.append(server)
        until(lambda: server.poll() is not None or is_open(self.port), 60, "the server did not listen")
        if server.poll() is not None:
            raise Unavailable("the server ended")

    def work(self, work: str, **sizes: Any) -> tuple[float, int]:
        works = {name: getattr(self, name) for name in ["loop", "loops", "polls", "sleepers", "pages"]}
        return asyncio.run(works[work](**sizes))

    def begin(self, key: str) -> None:
        asyncio.run(self.start_run("polls", {"uri": f"http://{self.setup.server}/poll/{key}"}))

    async def start_run(self, workflow: str, values: dict[str, Any]) -> str:
        """Start one run."""
        connection = Connection(self.address)
        await connection.send("PUT", f"/v1/workflows/{workflow}", {"text": WORKFLOWS[workflow], "file": f"{workflow}.yaml"})
        run_id = (await connection.send("POST", "/v1/runs", {"workflow": workflow, "input": values}))["run"]
        connection.close()
        return run_id

    async def timed(self, workflow: str, values: dict[str, Any]) -> tuple[float, int]:
        """Run one workflow to its end: its seconds, and its iterations in the store."""
        begin = time.monotonic()
        run_id = await self.start_run(workflow, values)
        connection = Connection(self.address)
        result: dict[str, Any] = {}
        while result.get("status") != "Succeeded":
            result = await connection.send("GET", f"/v1/runs/{run_id}/result?wait=60")
            if result.get("error"):
                raise Unavailable(str(result["error"])[:200])
        seconds = time.monotonic() - begin
        connection.close()
        return seconds, result["output"]["n"]

    async def loop(self, count: int) -> tuple[float, int]:
        return await self.timed("loop", {"count": count})

    async def loops(self, runs: int, count: int) -> tuple[float, int]:
        connection = Connection(self.address)
        await connection.send("PUT", "/v1/workflows/loop", {"text": LOOP, "file": "loop.yaml"})
        begin = time.monotonic()
        request = {"workflow": "loop", "input": {"count": count}}
        started = await send_all(self.address, "POST", [("/v1/runs", request)] * runs, CONNECTIONS)
        results = [(f"/v1/runs/{one['run']}/result?wait=60", None) for one in started]
        ended = await send_all(self.address, "GET", results, CONNECTIONS)
        seconds = time.monotonic() - begin
        return seconds, sum(one["output"]["n"] for one in ended)

    async def polls(self, key: str, count: int) -> tuple[float, int]:
        return await self.timed("polls", {"uri": f"http://{self.setup.server}/poll/{key}?until={count}"})

    async def sleepers(self, count: int) -> tuple[float, int]:
        connection = Connection(self.address)
        await connection.send("PUT", "/v1/workflows/sleeper", {"text": SLEEPER, "file": "sleeper.yaml"})
        begin = time.monotonic()
        await send_all(self.address, "POST", [("/v1/runs", {"workflow": "sleeper"})] * count, CONNECTIONS)
        waiting = 0
        while waiting < count:
            report = await connection.send("GET", "/v1/runs?facets=true&limit=1&workflow=sleeper")
            waiting = report["facets"]["status"].get("Waiting", 0)
        return time.monotonic() - begin, waiting

    async def pages(self, path: str, count: int) -> tuple[float, int]:
        values = {"server": self.setup.server, "pages": count, "path": path}
        seconds, _ = await self.timed("pages", values)
        with open(path, "rb") as file:
            return seconds, sum(1 for _ in file)


class WindlassSled(Windlass):
    """The default store."""

    name = "Windlass, sled"
    store = "sled"
    setting = "log segments synced before each answer"


class WindlassFjall(Windlass):
    """The faster store."""

    name = "Windlass, fjall"
    store = "fjall"
    setting = "journal synced before each answer"
