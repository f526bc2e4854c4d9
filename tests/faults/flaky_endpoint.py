"""A deterministic chat endpoint as a process of its own: replies follow from the content, and every call is logged.

    python flaky_endpoint.py LOG [--latency S]

LOG gets one line ``sent <hash of the request body>`` when a call arrives.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json

from aiohttp import web


async def main(log: str, latency: float) -> None:
    file = open(log, "a", buffering=1)  # noqa: SIM115, ASYNC230

    async def chat(request: web.Request) -> web.Response:
        raw = await request.read()
        key = hashlib.sha256(raw).hexdigest()
        file.write(f"sent {key}\n")
        body = json.loads(raw)
        spread = int(key[:4], 16) / 65535
        await asyncio.sleep(latency * (0.5 + spread))
        score = 1 + int(hashlib.sha256(body["messages"][-1]["content"].encode()).hexdigest(), 16) % 10
        text = f"Weighed by a fixed rule.\nVERDICT: {score}"
        reply = {
            "id": "x",
            "object": "chat.completion",
            "model": "local",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": 200, "completion_tokens": 4, "total_tokens": 204},
        }
        return web.json_response(reply)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log")
    parser.add_argument("--latency", type=float, default=0.005)
    given = parser.parse_args()
    asyncio.run(main(given.log, given.latency))
