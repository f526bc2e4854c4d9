"""A local OpenAI-compatible endpoint with a fixed latency, for benchmarks and fault tests; prints its port and serves."""

from __future__ import annotations

import argparse
import asyncio
import json

from aiohttp import web

REPLY = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "model": "local",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "VERDICT: 7"}}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 4, "total_tokens": 204},
    }
).encode()


async def main(latency: float, port: int) -> None:
    counts = {"calls": 0}

    async def chat(request: web.Request) -> web.Response:
        await request.read()
        counts["calls"] += 1
        await asyncio.sleep(latency)
        return web.Response(body=REPLY, content_type="application/json")

    async def count(request: web.Request) -> web.Response:
        return web.json_response(counts)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_get("/count", count)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    asyncio.run(main(given.latency, given.port))
