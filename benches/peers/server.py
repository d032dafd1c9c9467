"""The server that all peers poll and read pages from: `python3 server.py` prints its address."""

import asyncio
import json
import time
from functools import lru_cache
from urllib.parse import parse_qs, urlsplit

ROWS = 100
"""Rows of a page."""

hits: dict[str, list[float]] = {}
"""When each key was polled, on the clock that all processes of the machine share."""


def poll(key: str, complete_at: int) -> bytes:
    """Count a poll; the job is complete at the given one (0: never)."""
    times = hits.setdefault(key, [])
    times.append(time.monotonic())
    done = complete_at and len(times) >= complete_at
    return json.dumps({"status": "complete" if done else "running", "polls": len(times)}).encode()


@lru_cache(maxsize=None)
def page(number: int, pages: int) -> bytes:
    """A page of the list; the last one names no next page."""
    first = (number - 1) * ROWS
    rows = [{"id": first + at, "name": f"item {first + at}", "price": at * 1.25, "tags": ["a", "b"]} for at in range(ROWS)]
    return json.dumps({"items": rows, "next": number + 1 if number < pages else None}).encode()


def first_after(key: str, instant: float) -> bytes:
    """The first poll of a key after an instant, or null."""
    return json.dumps(next((one for one in hits.get(key, []) if one > instant), None)).encode()


def respond(target: str) -> bytes:
    """The body for `/poll/KEY`, `/page`, `/polls/KEY` (how often) or `/after/KEY` (when)."""
    address = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(address.query).items()}
    _, what, *rest = address.path.split("/")
    match what:
        case "poll":
            return poll(rest[0], int(query.get("until", 0)))
        case "page":
            return page(int(query["number"]), int(query["pages"]))
        case "polls":
            return json.dumps(len(hits.get(rest[0], []))).encode()
        case "after":
            return first_after(rest[0], float(query["instant"]))
        case _:
            return b"null"


class Http(asyncio.Protocol):
    """Just enough of HTTP/1.1: GET without a body, connections stay open."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            target = self.received.split(b" ", 2)[1].decode()
            self.received = self.received[end + 4 :]
            body = respond(target)
            head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            self.transport.write(head.encode() + body)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Http, "127.0.0.1", 0)
    print("127.0.0.1:%d" % server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
