"""DBOS in Python with its client: `dbos_worker.py FOLDER SERVER DATABASE`."""

import asyncio
import sys
import time
from typing import Any

import psycopg
from dbos import DBOS, DBOSConfig

from common import Getter, answer_works, append_rows

_, FOLDER, SERVER, DATABASE = sys.argv
THREADS = 1100
"""More than the loops that run side by side."""

STEPS = 500
"""Steps of a workflow without an end: a restart reads all steps of a workflow again."""

GETTER = Getter(SERVER)
asleep = 0

config: DBOSConfig = {
    "name": "peers",
    "system_database_url": DATABASE,
    "sys_db_pool_size": 50,
    "max_executor_threads": THREADS,
    "log_level": "ERROR",
    "executor_id": "peers",
    "application_version": "1",
    "enable_otlp": False,
}
DBOS(config=config)


@DBOS.step()
def step(n: int) -> int:
    """One iteration."""
    return n + 1


@DBOS.step()
def poll(key: str, count: int) -> str:
    """One poll."""
    return GETTER.get(f"/poll/{key}?until={count}")["status"]


@DBOS.step()
def fetch(path: str, number: int, count: int, length: int) -> tuple[int | None, int]:
    """One page: its rows are in the file when the step ends."""
    page = GETTER.get(f"/page?number={number}&pages={count}")
    return page["next"], append_rows(path, length, page["items"])


@DBOS.workflow()
def loop(count: int) -> int:
    n = 0
    while n < count:
        n = step(n)
    return n


@DBOS.workflow()
def polls(key: str, count: int) -> None:
    for _ in range(count or STEPS):
        if poll(key, count) == "complete":
            return
    DBOS.start_workflow(polls, key, count)


@DBOS.workflow()
async def sleeper() -> None:
    global asleep
    asleep += 1
    await DBOS.sleep_async(43200)


@DBOS.workflow()
def pages(path: str, count: int) -> int:
    number: int | None = 1
    length = 0
    while number is not None:
        number, length = fetch(path, number, count, length)
    return length


def stored(query: str, *values: Any) -> int:
    """The number that a query of the database returns."""
    with psycopg.connect(DATABASE.replace("+psycopg", "")) as connection:
        return connection.execute(query, values).fetchone()[0]


def steps(function: str) -> int:
    """How many steps of a function the database has."""
    query = "SELECT count(*) FROM dbos.operation_outputs WHERE function_name LIKE %s"
    return stored(query, f"%{function}")


async def timed(workflow: Any, function: str, *args: Any) -> tuple[float, int]:
    """Run one workflow to its end."""
    before = steps(function)
    begin = time.monotonic()
    handle = await asyncio.to_thread(DBOS.start_workflow, workflow, *args)
    await asyncio.to_thread(handle.get_result)
    return time.monotonic() - begin, steps(function) - before


async def work_loop(count: int) -> tuple[float, int]:
    return await timed(loop, "step", count)


async def work_loops(runs: int, count: int) -> tuple[float, int]:
    before = steps("step")
    begin = time.monotonic()
    await asyncio.to_thread(run_together, runs, count)
    return time.monotonic() - begin, steps("step") - before


def run_together(runs: int, count: int) -> None:
    """Run loops side by side, each in a thread: that is faster here than coroutines."""
    handles = [DBOS.start_workflow(loop, count) for _ in range(runs)]
    for handle in handles:
        handle.get_result()


async def work_polls(key: str, count: int) -> tuple[float, int]:
    return await timed(polls, "poll", key, count)


async def work_begin(key: str) -> tuple[float, int]:
    await asyncio.to_thread(DBOS.start_workflow, polls, key, 0)
    return 0.0, 0


async def work_sleepers(count: int) -> tuple[float, int]:
    """Starts 100 at a time, until all of them sleep."""
    begin = time.monotonic()
    turn = asyncio.Semaphore(100)

    async def start() -> None:
        async with turn:
            await DBOS.start_workflow_async(sleeper)

    await asyncio.gather(*(start() for _ in range(count)))
    query = "SELECT count(*) FROM dbos.operation_outputs WHERE function_name = 'DBOS.sleep'"
    while asleep < count or stored(query) < count:
        await asyncio.sleep(0.1)
    seconds = time.monotonic() - begin
    return seconds, stored("SELECT count(*) FROM dbos.workflow_status WHERE status = 'PENDING' AND name LIKE '%%sleeper'")


async def work_pages(path: str, count: int) -> tuple[float, int]:
    seconds, _ = await timed(pages, "fetch", path, count)
    with open(path, "rb") as file:
        return seconds, sum(1 for _ in file)


async def main() -> None:
    await asyncio.to_thread(DBOS.launch)
    works = {"loop": work_loop, "loops": work_loops, "polls": work_polls, "begin": work_begin}
    await answer_works({**works, "sleepers": work_sleepers, "pages": work_pages})


if __name__ == "__main__":
    asyncio.run(main())
