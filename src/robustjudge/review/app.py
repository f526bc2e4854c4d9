"""The review pages: the queue, one item with everything behind it, decisions by a key, and the trail as JSON lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from robustjudge.engine.folder import TABLE
from robustjudge.errors import RobustJudgeError
from robustjudge.review.queue import Item, Queue
from robustjudge.review.store import Conflict
from robustjudge.view.pages import Missing, assets, page, posted, told, whole
from robustjudge.view.trial import text_of, trial_of
from robustjudge.web.guard import visitor

SHOW = ("waiting", "decided", "all")
KINDS = ("failure", "swing", "generated")


class Review:
    """What each address shows and does.  Who decides is the visitor behind the link, never a field of the form."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue

    def home(self, request: Request) -> Response:
        query = request.query_params
        number, show, kind = query.get("page", ""), query.get("show", ""), query.get("kind", "")
        show = show if show in SHOW else "waiting"
        kind = kind if kind in KINDS else ""
        at = int(number) if number.isdigit() and len(number) < 10 else 0
        found = self.queue.page(at, show, kind)
        return page(request, "queue.html", p=found, show=show, kind=kind, shows=SHOW, kinds=KINDS, where=self.where)

    @property
    def where(self) -> str:
        return self.queue.store.where

    def item(self, request: Request) -> Response:
        return self._shown(request, self._at(request))

    async def decide(self, request: Request) -> Response:
        """Store a decision and go on to the next item; a late or wrong one comes back with everything typed kept."""
        fields = await posted(request)
        given = {k: fields.get(k, "") for k in ("decision", "seen", "note", "content")}
        return await run_in_threadpool(self._decided, request, given)

    def _decided(self, request: Request, given: dict[str, str]) -> Response:
        item, who = self._at(request), visitor(request.scope)
        seen = int(given["seen"]) if given["seen"].isdigit() and len(given["seen"]) < 10 else -1
        try:
            if given["decision"] == "note":
                self.queue.store.note(item.id, who, given["note"])
                return RedirectResponse(f"/item/{item.id}", 303)
            self.queue.decide(item, seen, given["decision"], who, given["note"], given["content"])
        except Conflict as late:
            return self._shown(request, item, 409, str(late), given)
        except RobustJudgeError as fault:
            return self._shown(request, item, 400, str(fault), given)
        return RedirectResponse(f"/next?after={item.id}", 303)

    def next(self, request: Request) -> Response:
        name = self.queue.after(request.query_params.get("after", ""))
        return RedirectResponse(f"/item/{name}" if name else "/", 303)

    def text(self, request: Request) -> Response:
        item = self._at(request)
        return whole(text_of(Path(item.run) / TABLE, request.path_params["hash"]) if item.run else None)

    def export(self, request: Request) -> Response:
        lines = (json.dumps(x, ensure_ascii=False, sort_keys=True) + "\n" for x in self.queue.export())
        headers = {"content-disposition": 'attachment; filename="review.jsonl"'}
        return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)

    def _at(self, request: Request) -> Item:
        item = self.queue.item(request.path_params["id"])
        if item is None:
            raise Missing("no such item in this queue")
        return item

    def _shown(
        self, request: Request, item: Item, status: int = 200, fault: str = "", given: dict[str, str] | None = None
    ) -> Response:
        trail = self.queue.store.trail(item.id)
        t: dict[str, Any] | None = trial_of(Path(item.run) / TABLE, item.cell) if item.run else None
        typed = given or {"note": "", "content": item.text}
        seen = trail[-1].version if trail else 0
        return page(request, "item.html", status, item=item, t=t, trail=trail, seen=seen, fault=fault, given=typed)


def app_of(queue: Queue) -> Starlette:
    """The application over a queue; put the guard in front of it (:class:`robustjudge.web.Server` does)."""
    r = Review(queue)
    return Starlette(
        routes=[
            Route("/", r.home),
            Route("/next", r.next),
            Route("/export.jsonl", r.export),
            Route("/item/{id}", r.item),
            Route("/item/{id}", r.decide, methods=["POST"]),
            Route("/item/{id}/text/{hash}", r.text),
            *assets(),
        ],
        exception_handlers={RobustJudgeError: told},
    )
