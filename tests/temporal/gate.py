"""Lets requests through to Temporal that bring a key: `gate.py TO KEY CERTIFICATE KEY_OF_IT`. It prints
its port. What it lets through it does not look into."""

import asyncio
import sys

import grpc

NO_LIMIT = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class Gate(grpc.GenericRpcHandler):
    def __init__(self, channel, key):
        self.channel = channel
        self.wanted = f"Bearer {key}"

    def service(self, details):
        brought = dict(details.invocation_metadata).get("authorization")

        async def forward(request, context):
            if brought != self.wanted:
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, "this key lets nobody in")
            ask = self.channel.unary_unary(details.method)
            try:
                return await ask(request, timeout=context.time_remaining())
            except grpc.aio.AioRpcError as error:
                await context.abort(error.code(), error.details(), error.trailing_metadata())

        return grpc.unary_unary_rpc_method_handler(forward)


async def main(to, key, certificate, private):
    pair = tuple(open(file, "rb").read() for file in (private, certificate))
    async with grpc.aio.insecure_channel(to, options=NO_LIMIT) as channel:
        server = grpc.aio.server(options=NO_LIMIT)
        server.add_generic_rpc_handlers((Gate(channel, key),))
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
        await server.start()
        print(port, flush=True)
        await server.wait_for_termination()


asyncio.run(main(*sys.argv[1:]))
