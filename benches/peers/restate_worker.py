"""The services of Restate and their client: `restate_worker.py FOLDER SERVER PORT INGRESS ADMIN`."""

import asyncio
import sys
import time
from datetime import timedelta
from typing import Any

import restate
from hypercorn.asyncio import serve
from hypercorn.config import Config

from common import Connection, Getter, answer_works, append_rows, send_all

_, FOLDER, SERVER, PORT, INGRESS, ADMIN = sys.argv
CONNECTIONS = 100
"""Connections of the client that starts many invocations."""

GETTER = Getter(SERVER)
peers = restate.Service("peers")
asleep = 0


@peers.handler()
async def loop(ctx: restate.Context, count: int) -> int:
    """Iterations as journaled steps."""
    n = 0
    while n < count:
        n = await ctx.run_typed("step", lambda at=n: at + 1)
    return n


@peers.handler()
async def polls(ctx: restate.Context, job: dict[str, Any]) -> None:
    """Poll a job. Only one loop polls, so a blocking client delays no other."""
    path = f"/poll/{job['key']}?until={job['count']}"
    for _ in range(job["steps"]):
        if await ctx.run_typed("poll", lambda: GETTER.get(path)["status"]) == "complete":
            return
    # The journal of an invocation is read again after a restart, so a long loop continues in a new one.
    ctx.service_send(polls, arg=job)


@peers.handler()
async def sleeper(ctx: restate.Context, hours: int) -> None:
    """Wait, suspended."""
    global asleep
    asleep += 1
    await ctx.sleep(timedelta(hours=hours))


@peers.handler()
async def pages(ctx: restate.Context, job: dict[str, Any]) -> int:
    """Read all pages: the rows of a page are in the file when its step ends."""
    number, length = 1, 0

    def fetch() -> list[Any]:
        page = GETTER.get(f"/page?number={number}&pages={job['count']}")
        return [page["next"], append_rows(job["path"], length, page["items"])]

    while number is not None:
        number, length = await ctx.run_typed("fetch", fetch)
    return length


class Works:
    """The works as invocations."""

    def __init__(self) -> None:
        self.ingress = f"127.0.0.1:{INGRESS}"
        self.admin = f"127.0.0.1:{ADMIN}"

    async def register(self) -> None:
        """Register the services as soon as the server is there, and wait for its partitions."""
        while True:
            try:
                body = {"uri": f"http://127.0.0.1:{PORT}", "force": True}
                await Connection(self.admin).send("POST", "/deployments", body)
                await self.steps("loop")
                return
            except (OSError, RuntimeError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.02)

    async def call(self, handler: str, value: Any) -> Any:
        """Call a handler and wait for its answer."""
        return await Connection(self.ingress).send("POST", f"/peers/{handler}", value)

    async def query(self, text: str) -> int:
        """The number that a query of the server's own tables returns."""
        answer = await Connection(self.admin).send("POST", "/query", {"query": text})
        return int(next(iter(answer["rows"][0].values())))

    async def steps(self, handler: str) -> int:
        """How many steps of a handler the journals have."""
        return await self.query(
            "SELECT count(*) AS n FROM sys_journal j JOIN sys_invocation i ON i.id = j.id "
            f"WHERE i.target_handler_name = '{handler}' AND j.entry_type = 'Command: Run'"
        )

    async def loop(self, count: int) -> tuple[float, int]:
        before = await self.steps("loop")
        begin = time.monotonic()
        await self.call("loop", count)
        seconds = time.monotonic() - begin
        return seconds, await self.steps("loop") - before

    async def loops(self, runs: int, count: int) -> tuple[float, int]:
        before = await self.steps("loop")
        begin = time.monotonic()
        await send_all(self.ingress, "POST", [("/peers/loop", count)] * runs, runs)
        seconds = time.monotonic() - begin
        return seconds, await self.steps("loop") - before

    async def polls(self, key: str, count: int) -> tuple[float, int]:
        before = await self.steps("polls")
        begin = time.monotonic()
        await self.call("polls", {"key": key, "count": count, "steps": count})
        seconds = time.monotonic() - begin
        return seconds, await self.steps("polls") - before

    async def begin(self, key: str) -> tuple[float, int]:
        await self.call("polls/send", {"key": key, "count": 0, "steps": 500})
        return 0.0, 0

    async def sleepers(self, count: int) -> tuple[float, int]:
        begin = time.monotonic()
        await send_all(self.ingress, "POST", [("/peers/sleeper/send", 12)] * count, CONNECTIONS)
        while asleep < count:
            await asyncio.sleep(0.01)
        seconds = time.monotonic() - begin
        return seconds, await self.query(
            "SELECT count(*) AS n FROM sys_invocation WHERE target_handler_name = 'sleeper' AND status != 'completed'"
        )

    async def pages(self, path: str, count: int) -> tuple[float, int]:
        begin = time.monotonic()
        await self.call("pages", {"path": path, "count": count})
        seconds = time.monotonic() - begin
        with open(path, "rb") as file:
            return seconds, sum(1 for _ in file)


async def main() -> None:
    config = Config()
    config.bind = [f"127.0.0.1:{PORT}"]
    config.accesslog = None
    config.backlog = 2000
    config.h2_max_concurrent_streams = 20000
    serving = asyncio.create_task(serve(restate.app([peers]), config))
    works = Works()
    await works.register()
    names = ["loop", "loops", "polls", "begin", "sleepers", "pages"]
    await answer_works({name: getattr(works, name) for name in names})
    serving.cancel()


if __name__ == "__main__":
    asyncio.run(main())
