"""Processes, requests and figures that every peer needs. Only the standard library."""

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


class Unavailable(Exception):
    """A peer that cannot be measured here; the text is the reason in the table."""


@dataclass
class Setup:
    """What all peers share in one run of the command."""

    folder: Path
    """Everything that the command installs and writes is below this folder."""
    windlass: Path
    python: Path
    """The interpreter of the virtual environment with the SDKs."""
    server: str
    """`host:port` of the server that polls and pages are read from."""


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(command: list[str | Path], **options: Any) -> str:
    """Run a command to its end and return its output; a failure is a reason for the table."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    except OSError as error:
        raise Unavailable(f"`{Path(command[0]).name}`: {error.strerror}") from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        reason = lines[-1] if lines else f"exit code {done.returncode}"
        raise Unavailable(f"`{Path(command[0]).name}`: {reason}")
    return done.stdout


def spawn(command: list[str | Path], log: Path, **options: Any) -> subprocess.Popen:
    """Start a process in a group of its own, so that one signal reaches its children too."""
    # Nothing may be written to the checkout, also no bytecode.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **options.pop("env", {})}
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as errors:
        options = {"stdout": errors, "stderr": errors, "stdin": subprocess.DEVNULL, **options}
        return subprocess.Popen(command, start_new_session=True, env=environment, **options)


def family(roots: Iterable[int]) -> list[int]:
    """The processes and all their descendants, also those that left the process group."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = list(roots)
    for process in found:
        found.extend(children.get(process, []))
    return found


def end(processes: list[subprocess.Popen], how: signal.Signals) -> None:
    """Signal the processes, wait, and kill what is left of their families after ten seconds."""
    everyone = family(process.pid for process in processes if process.poll() is None)
    first = everyone if how == signal.SIGKILL else [process.pid for process in processes]
    signal_all(first, how)
    deadline = time.monotonic() + 10
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
    signal_all(everyone, signal.SIGKILL)
    for process in processes:
        process.wait()


def signal_all(processes: Iterable[int], how: signal.Signals) -> None:
    """Send a signal; a process that has ended is fine."""
    for process in processes:
        try:
            os.kill(process, how)
        except ProcessLookupError:
            pass


def memory(roots: Iterable[int]) -> int:
    """Bytes of memory of the processes and their descendants; shared pages count once (PSS)."""
    total = 0
    for process in family(roots):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def disk(folder: Path) -> int:
    """Bytes that the files of a folder occupy, without what was only reserved behind their ends.

    Files may disappear meanwhile.
    """
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                status = os.lstat(os.path.join(place, name))
                total += min(status.st_blocks * 512, status.st_size)
            except FileNotFoundError:
                pass
    return total


def until(is_done: Callable[[], Any], seconds: float, what: str) -> Any:
    """Wait until something is true, and return it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := is_done():
            return answer
        time.sleep(0.005)
    raise Unavailable(f"{what} after {seconds:.0f} s")


def is_open(port: int) -> bool:
    """Whether something listens on a local port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Getter:
    """A blocking client with one connection: the least that a poll costs in Python."""

    def __init__(self, address: str) -> None:
        self.connection = http.client.HTTPConnection(address, timeout=60)

    def get(self, path: str) -> Any:
        """The JSON of a path. A lost connection is made again once."""
        try:
            self.connection.request("GET", path)
        except (ConnectionError, http.client.HTTPException):
            self.connection.close()
            self.connection.request("GET", path)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"GET {path}: {answer.status}")
        return json.loads(body)


class Connection:
    """An asynchronous HTTP client with one connection, for many starts at a time."""

    def __init__(self, address: str) -> None:
        self.host, port = address.split(":")
        self.port = int(port)
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def send(self, method: str, path: str, value: Any = None) -> Any:
        """Send a request with a JSON body and return the JSON of the answer."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        body = b"" if value is None else json.dumps(value).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: {self.host}:{self.port}\r\naccept: application/json\r\n"
        kind = "content-type: application/json\r\n" if body else ""
        self.writer.write(f"{head}{kind}content-length: {len(body)}\r\n\r\n".encode() + body)
        status, answer = await self.receive()
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer[:300]!r}")
        return json.loads(answer) if answer else None

    async def receive(self) -> tuple[int, bytes]:
        """Read one answer: its status and its body."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        status = int(head.split(" ", 2)[1])
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        if "chunked" not in fields.get("transfer-encoding", ""):
            return status, await self.reader.readexactly(int(fields.get("content-length", 0)))
        body = b""
        while size := int(await self.reader.readline(), 16):
            body += await self.reader.readexactly(size)
            await self.reader.readline()
        await self.reader.readline()
        return status, body

    def close(self) -> None:
        """Close the connection."""
        if self.writer is not None:
            self.writer.close()


async def send_all(address: str, method: str, requests: list[tuple[str, Any]], connections: int) -> list[Any]:
    """Send many requests over a number of connections; the answers are in the order of requests."""
    answers: list[Any] = [None] * len(requests)
    waiting = iter(enumerate(requests))

    async def work() -> None:
        connection = Connection(address)
        for at, (path, value) in waiting:
            answers[at] = await connection.send(method, path, value)
        connection.close()

    await asyncio.gather(*(work() for _ in range(min(connections, len(requests)))))
    return answers


def append_rows(path: str, length: int, rows: list[Any]) -> int:
    """Append rows behind a known length and sync; return the new length.

    The length is in the caller's durable state, so a repeated page replaces what the interrupted
    one wrote: each row is in the file once.
    """
    with open(path, "r+b" if os.path.exists(path) else "w+b") as file:
        file.truncate(length)
        file.seek(length)
        file.write(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
        file.flush()
        os.fdatasync(file.fileno())
        return file.tell()


Work = Callable[..., Awaitable[tuple[float, int]]]


async def answer_works(works: dict[str, Work]) -> None:
    """Do the works that arrive as JSON lines on standard input, until it ends.

    A work returns its seconds and how much of it is in the store afterwards.
    """
    loop = asyncio.get_running_loop()
    read = os.fdopen(os.dup(0), "r", encoding="utf-8")
    print(json.dumps({"ready": True}), flush=True)
    while line := await loop.run_in_executor(None, read.readline):
        request = json.loads(line)
        try:
            seconds, done = await works[request["work"]](**request["sizes"])
            answer: dict[str, Any] = {"seconds": seconds, "done": done}
        except Exception as error:  # A peer's own failure is a row of the table.
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), flush=True)
