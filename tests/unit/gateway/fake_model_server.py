"""A model server that answers as a test tells it, on a real socket."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CANARY = "sk-canary-0123456789abcdef-CANARY"


@dataclass
class Planned:
    """One answer: a body, or events with what happens between them."""

    status: int = 200
    body: Any = None
    events: list[bytes | float | threading.Event | str] | None = None
    """bytes are sent, a float is slept, an Event is waited for, "cut" breaks the connection."""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0


@dataclass
class Got:
    path: str
    headers: dict[str, str]
    body: Any
    query: str


class FakeModelServer:
    """Answers each request with the next planned answer, the last one again and again."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.got: list[Got] = []
        self.plans: deque[Planned] = deque()
        self.under_way = 0
        self.most_under_way = 0
        self.hung_up = threading.Event()

    def plan(self, *plans: Planned) -> None:
        self.plans.extend(plans)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import Request
        from starlette.responses import Response, StreamingResponse

        request = Request(scope, receive)
        raw = await request.body()
        body = json.loads(raw) if raw else None
        self.got.append(Got(request.url.path, dict(request.headers), body, request.url.query))
        plan = self.plans.popleft() if len(self.plans) > 1 else self.plans[0]
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(plan.delay)
            if plan.events is None:
                data = plan.body if isinstance(plan.body, bytes) else json.dumps(plan.body).encode()
                headers = {"content-type": "application/json", **plan.headers}
                await Response(data, plan.status, headers)(scope, receive, send)
            else:
                headers = {"content-type": "text/event-stream", **plan.headers}
                stream = StreamingResponse(self._events(plan), plan.status, headers)
                await stream(scope, receive, send)
        finally:
            self.under_way -= 1

    async def _events(self, plan: Planned) -> AsyncIterator[bytes]:
        try:
            for each in plan.events or ():
                if isinstance(each, bytes):
                    yield each
                elif isinstance(each, float):
                    await asyncio.sleep(each)
                elif isinstance(each, threading.Event):
                    while not each.is_set():
                        await asyncio.sleep(0.005)
                else:
                    raise ConnectionAbortedError("as planned")
        except asyncio.CancelledError:
            self.hung_up.set()
            raise


class Served:
    """An ASGI application on a port of its own."""

    def __init__(self, application: Any) -> None:
        import uvicorn

        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        config = uvicorn.Config(
            application, lifespan="off", log_config=None, timeout_graceful_shutdown=1
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],), daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(10)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
