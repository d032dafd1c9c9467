"""Each client starts a wait and gets its result, over standard input and over HTTP: tests/agents/run."""

import asyncio
import http.server
import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

PROGRAM = sys.argv[1]
HERE = Path(__file__).parent
# What the answers of a whole watch may have, in bytes: far less than 2,000 tokens.
MOST = 2_000


class Job(http.server.BaseHTTPRequestHandler):
    """A job that is done after five checks, by the path of its address."""

    checks: dict[str, int] = {}

    def do_GET(self):
        seen = self.checks[self.path] = self.checks.get(self.path, 0) + 1
        body = json.dumps({"state": "done" if seen >= 5 else "busy", "checks": seen}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


async def watch(name, call, url):
    """Starts a poll and waits for its end with one more call."""
    url = f"{url}/{name}"
    started = await call("poll", {"url": url, "until": "body.state == 'done'", "every": "100ms"})
    run = json.loads(started)["run"]
    ended = await call("wait_for_run", {"run": run, "seconds": 600})
    result = json.loads(ended)
    assert result["status"] == "Succeeded" and result["output"]["checks"] == 5, result
    assert len(started) + len(ended) < MOST, (started, ended)
    print(f"{name}: {len(started) + len(ended)} bytes of answers")


async def python_sdk(name, streams, url):
    async with ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        tools = {tool.name for tool in (await session.list_tools()).tools}
        assert {"wait_for", "poll", "wait_for_run"} <= tools, tools

        async def call(tool, arguments):
            return (await session.call_tool(tool, arguments)).content[0].text

        await watch(name, call, url)


async def fastmcp(name, transport, url):
    async with Client(transport) as client:

        async def call(tool, arguments):
            return (await client.call_tool(tool, arguments)).content[0].text

        await watch(name, call, url)


def typescript_sdk(name, *arguments):
    line = ["node", str(HERE / "client.mjs"), *arguments]
    output = subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True).stdout
    seen = json.loads(output)
    assert seen["ended"]["status"] == "Succeeded", seen
    assert seen["progress"], "no reports of progress"
    print(f"{name}: {len(seen['progress'])} reports of progress")


async def main(state, server, url):
    def arguments(name):
        return ["mcp", "--state", f"{state}/{name}", "--allow-private-network"]

    parameters = StdioServerParameters(command=PROGRAM, args=arguments("python"))
    async with stdio_client(parameters) as streams:
        await python_sdk("python-stdio", streams, url)
    async with streamable_http_client(server) as streams:
        await python_sdk("python-http", streams, url)
    await fastmcp("fastmcp-stdio", StdioTransport(PROGRAM, arguments("fastmcp")), url)
    await fastmcp("fastmcp-http", server, url)


with tempfile.TemporaryDirectory() as state:
    jobs = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Job)
    threading.Thread(target=jobs.serve_forever, daemon=True).start()
    line = [PROGRAM, "serve", "--state", f"{state}/server", "--listen", "127.0.0.1:0", "--allow-private-network"]
    server = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    try:
        ready = next(line for line in server.stderr if line.startswith("ready at "))
        threading.Thread(target=server.stderr.read, daemon=True).start()
        address = ready.split()[-1] + "/mcp"
        asyncio.run(main(state, address, f"http://127.0.0.1:{jobs.server_port}"))
        typescript_sdk("typescript-stdio", "stdio", PROGRAM, f"{state}/typescript")
        typescript_sdk("typescript-http", "http", address)
    finally:
        server.terminate()
        server.wait()
