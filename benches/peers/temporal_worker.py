"""The worker and client of Temporal: `temporal_worker.py FOLDER SERVER TARGET`."""

import asyncio
import sys
import time
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from common import Getter, answer_works, append_rows

QUEUE = "peers"

OPTIONS: dict[str, Any] = {
    # An activity that a SIGKILL interrupted is repeated after this time, so it is as short as is safe here.
    "start_to_close_timeout": timedelta(seconds=2),
}

GETTER = Getter(sys.argv[2])
asleep = 0


@activity.defn
async def step(n: int) -> int:
    """One iteration."""
    return n + 1


@activity.defn
async def poll(key: str, count: int) -> str:
    """One poll. Only one loop polls, so a blocking client delays no other."""
    return GETTER.get(f"/poll/{key}?until={count}")["status"]


@activity.defn
async def fetch(path: str, number: int, count: int, length: int) -> tuple[int | None, int]:
    """One page: its rows are in the file when the activity ends."""
    page = GETTER.get(f"/page?number={number}&pages={count}")
    return page["next"], append_rows(path, length, page["items"])


@workflow.defn
class Loop:
    @workflow.run
    async def run(self, n: int, count: int) -> int:
        while n < count:
            n = await workflow.execute_activity(step, n, **OPTIONS)
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(args=[n, count])
        return n


@workflow.defn
class Polls:
    @workflow.run
    async def run(self, key: str, count: int) -> None:
        while await workflow.execute_activity(poll, args=[key, count], **OPTIONS) != "complete":
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(args=[key, count])


@workflow.defn
class Sleeper:
    @workflow.run
    async def run(self) -> None:
        global asleep
        asleep += 1
        await workflow.sleep(timedelta(hours=12))


@workflow.defn
class Pages:
    @workflow.run
    async def run(self, path: str, number: int | None, count: int, length: int) -> int:
        while number is not None:
            number, length = await workflow.execute_activity(fetch, args=[path, number, count, length], **OPTIONS)
            if number is not None and workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(args=[path, number, count, length])
        return length


async def main() -> None:
    works = Works(await connect())
    names = ["loop", "loops", "polls", "begin", "sleepers", "pages"]
    async with works.worker():
        await answer_works({name: getattr(works, name) for name in names})


async def connect() -> Client:
    """Connect as soon as the server is there."""
    while True:
        try:
            return await Client.connect(sys.argv[3])
        except RuntimeError:
            await asyncio.sleep(0.02)


class Works:
    """The works as workflows."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.made = 0

    def worker(self) -> Worker:
        return Worker(
            self.client,
            task_queue=QUEUE,
            workflows=[Loop, Polls, Sleeper, Pages],
            activities=[step, poll, fetch],
            workflow_runner=UnsandboxedWorkflowRunner(),
            # A workflow that a killed worker had in its cache waits for so long after a restart.
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
            max_cached_workflows=2000,
            max_concurrent_workflow_tasks=200,
            max_concurrent_activities=200,
        )

    async def begin_workflow(self, run: Any, *args: Any) -> WorkflowHandle:
        """Start a workflow with an id of its own."""
        self.made += 1
        name = f"{run.__qualname__}-{self.made}-{time.time_ns()}"
        return await self.client.start_workflow(run, args=list(args), id=name, task_queue=QUEUE)

    async def completed(self, handle: WorkflowHandle) -> int:
        """How many activities the server has as completed, over all executions of the workflow."""
        total = 0
        run = handle.first_execution_run_id
        while run:
            following = ""
            async for event in self.client.get_workflow_handle(handle.id, run_id=run).fetch_history_events():
                total += event.HasField("activity_task_completed_event_attributes")
                if event.HasField("workflow_execution_continued_as_new_event_attributes"):
                    following = event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
            run = following
        return total

    async def loop(self, count: int) -> tuple[float, int]:
        begin = time.monotonic()
        handle = await self.begin_workflow(Loop.run, 0, count)
        await handle.result()
        return time.monotonic() - begin, await self.completed(handle)

    async def loops(self, runs: int, count: int) -> tuple[float, int]:
        begin = time.monotonic()
        handles = await asyncio.gather(*(self.begin_workflow(Loop.run, 0, count) for _ in range(runs)))
        await asyncio.gather(*(handle.result() for handle in handles))
        seconds = time.monotonic() - begin
        return seconds, sum([await self.completed(handle) for handle in handles])

    async def polls(self, key: str, count: int) -> tuple[float, int]:
        begin = time.monotonic()
        handle = await self.begin_workflow(Polls.run, key, count)
        await handle.result()
        return time.monotonic() - begin, await self.completed(handle)

    async def begin(self, key: str) -> tuple[float, int]:
        await self.begin_workflow(Polls.run, key, 0)
        return 0.0, 0

    async def sleepers(self, count: int) -> tuple[float, int]:
        """Starts 100 at a time, until all of them have set their timer."""
        begin = time.monotonic()
        turn = asyncio.Semaphore(16)

        async def start() -> None:
            async with turn:
                await self.begin_workflow(Sleeper.run)

        await asyncio.gather(*(start() for _ in range(count)))
        while asleep < count:
            await asyncio.sleep(0.01)
        seconds = time.monotonic() - begin
        query = "WorkflowType = 'Sleeper' AND ExecutionStatus = 'Running'"
        return seconds, (await self.client.count_workflows(query)).count

    async def pages(self, path: str, count: int) -> tuple[float, int]:
        begin = time.monotonic()
        await (await self.begin_workflow(Pages.run, path, 1, count, 0)).result()
        seconds = time.monotonic() - begin
        with open(path, "rb") as file:
            return seconds, sum(1 for _ in file)


if __name__ == "__main__":
    asyncio.run(main())
