// The TypeScript client over one transport: stdio PROGRAM STATE, or http URL. Prints what it got as JSON.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, target, state] = process.argv.slice(2);
const transport =
  kind === "stdio"
    ? new StdioClientTransport({ command: target, args: ["mcp", "--state", state] })
    : new StreamableHTTPClientTransport(new URL(target));
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const call = async (name, args, options) => {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  return JSON.parse(result.content[0].text);
};
const started = await call("wait_for", { time: "13s" });
const progress = [];
// Reports of progress keep the call alive beyond the time of the client.
const ended = await call("wait_for_run", { run: started.run }, {
  onprogress: (one) => progress.push(one.message),
  timeout: 11_000,
  resetTimeoutOnProgress: true,
});
console.log(JSON.stringify({ tools: tools.length, started, ended, progress }));
process.exit(0);
