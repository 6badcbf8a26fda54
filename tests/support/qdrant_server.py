"""A server that answers the few requests of Qdrant's REST interface that a global memory makes, from memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from aiohttp import web
from aiohttp.test_utils import TestServer

from flowevolve.policies.similarity import cosine

Broken = Literal["error", "page", "stranger", "busy", "busy until"]
BROKEN: dict[Broken, tuple[int, str, dict[str, str]]] = {
    "error": (500, "broken\non purpose", {}),
    "page": (200, "<html>Welcome</html>", {}),
    "stranger": (200, '{"message": "no Qdrant"}', {}),
    "busy": (429, '{"status": {"error": "too many requests"}}', {"Retry-After": "3"}),
    "busy until": (429, "", {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}),
}
"""What it answers to everything: status, text and headers."""


class FakeQdrant:
    """Collections by name. ``broken`` says how it fails; ``key`` is what requests have to bring."""

    def __init__(self, key: str | None = None, *, broken: Broken | None = None) -> None:
        self.key = key
        self.broken = broken
        self.collections: dict[str, dict[str, Any]] = {}
        self.points: dict[str, dict[str, dict[str, Any]]] = {}

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        one = "/collections/{name}"
        app.router.add_get(f"{one}/exists", self._answer(lambda name, _: {"exists": name in self.collections}))
        app.router.add_get(one, self._answer(self._about))
        app.router.add_put(one, self._answer(self._create))
        app.router.add_put(f"{one}/points", self._answer(self._upsert))
        app.router.add_post(f"{one}/points/count", self._answer(lambda name, _: {"count": len(self.points[name])}))
        app.router.add_post(f"{one}/points/query/batch", self._answer(self._query))
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        if self.broken is not None:
            status, text, headers = BROKEN[self.broken]
            return web.Response(status=status, text=text, headers=headers)
        if self.key is not None and request.headers.get("api-key") != self.key:
            raise web.HTTPForbidden(text="Invalid API key")
        response: web.StreamResponse = await handler(request)
        return response

    def _answer(self, work: Callable[[str, Any], object]) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.Response:
            body = await request.json() if request.can_read_body else None
            result = work(request.match_info["name"], body)
            return web.json_response({"result": result, "status": "ok", "time": 0.0})

        return handle

    def _create(self, name: str, body: dict[str, Any]) -> bool:
        if name in self.collections:
            raise web.HTTPConflict(text="already exists")
        self.collections[name] = body
        self.points[name] = {}
        return True

    def _about(self, name: str, _: object) -> dict[str, Any]:
        made = self.collections[name]
        return {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "payload_schema": {},
            "config": {
                "params": {"vectors": made["vectors"]},
                "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
                "optimizer_config": {"default_segment_number": 0, "flush_interval_sec": 5},
                "metadata": made.get("metadata"),
            },
        }

    def _upsert(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        for point in body["points"]:
            self.points[name][point["id"]] = point
        return {"operation_id": 1, "status": "completed"}

    def _query(self, name: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"points": self._nearest(name, search)} for search in body["searches"]]

    def _nearest(self, name: str, search: dict[str, Any]) -> list[dict[str, Any]]:
        query = search["query"]["nearest"] if isinstance(search["query"], dict) else search["query"]
        scored = [(cosine(query, point["vector"]), point) for point in self.points[name].values()]
        scored.sort(key=lambda pair: -pair[0])
        return [{**point, "version": 1, "score": score} for score, point in scored[: search["limit"]]]


@asynccontextmanager
async def serving(qdrant: FakeQdrant) -> AsyncIterator[str]:
    """The URL of a server."""
    async with TestServer(qdrant.app()) as server:
        yield str(server.make_url("/")).rstrip("/")
