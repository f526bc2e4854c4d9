"""The labelling page: one item at a time, one key for each label, nothing shown that another rater said.

Server-rendered, no build step.  The guard in front (:mod:`robustjudge.web`) names the visitor; candidate text is
escaped by the template and shown with its hidden characters made visible, never as markup.
"""

from __future__ import annotations

import time
from functools import lru_cache
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from robustjudge.errors import RobustJudgeError
from robustjudge.labelling.store import Item, Store
from robustjudge.reports.texts import visible
from robustjudge.spec import digest
from robustjudge.web.guard import form_token, visitor

ADJUDICATOR = "adjudicator"
LONGEST = 3600.0
"""Seconds on one item beyond which the rater was away: not a time, so none is kept."""


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("robustjudge.labelling", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda v: visible(v) if type(v) is str else v,
    )


class Labelling:
    """The pages over one store.  ``shown`` remembers when a place was first shown, to time the answer here and not in
    the browser."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.shown: dict[tuple[str, int], float] = {}

    async def home(self, request: Request) -> Response:
        """The rater's next item, or what is left to do."""
        who = visitor(request.scope)
        if who == ADJUDICATOR:
            return RedirectResponse("/adjudicate", 303)
        position = request.query_params.get("position", "")
        place = await run_in_threadpool(self._place, who, position)
        if place is None:
            return RedirectResponse("/agreement", 303)
        done, total = await run_in_threadpool(self.store.progress, who)
        self.shown.setdefault((who, place.position), time.monotonic())
        return self._page(request, "item.html", place=place, done=done, total=total)

    def _place(self, who: str, position: str) -> Any:
        if position.isdecimal() and len(position) <= 9:
            earlier = self.store.place(who, int(position))
            if earlier is not None and earlier.label:
                return earlier
        return self.store.next(who)

    async def label(self, request: Request) -> Response:
        """Keep one label of the visitor and go on to the next item."""
        who = visitor(request.scope)
        form = await fields(request)
        position, given = form.get("position", ""), self.chosen(form)
        if who == ADJUDICATOR or not position.isdecimal() or len(position) > 9:
            return PlainTextResponse("No such place.", 400)
        started = self.shown.pop((who, int(position)), None)
        seconds = None if started is None else time.monotonic() - started
        if seconds is not None and seconds > LONGEST:
            seconds = None
        try:
            await run_in_threadpool(self.store.put, who, int(position), given, seconds)
        except RobustJudgeError as fault:
            return PlainTextResponse(str(fault), 400)
        return RedirectResponse("/", 303)

    async def agreement(self, request: Request) -> Response:
        """Progress of all; agreement only once everybody is done, so that nobody labels by it."""
        rows = [(r, *await run_in_threadpool(self.store.progress, r)) for r in self.store.raters]
        figures = await run_in_threadpool(agreement_of, self.store) if all(a == b for _, a, b in rows) else []
        return self._page(request, "agreement.html", rows=rows, figures=figures)

    async def adjudicate(self, request: Request) -> Response:
        """The disputed items with everybody's label; open to the adjudicator when all raters are done."""
        if visitor(request.scope) != ADJUDICATOR:
            return PlainTextResponse("Only the adjudicator's link opens this page.", 403)
        if request.method == "POST":
            form = await fields(request)
            named = {key_of(i): i.id for i, _, _ in await run_in_threadpool(self.store.disputed)}
            item = named.get(form.get("item", ""), "")
            try:
                await run_in_threadpool(self.store.adjudicate, item, self.chosen(form), ADJUDICATOR)
            except RobustJudgeError as fault:
                return PlainTextResponse(str(fault), 400)
            return RedirectResponse("/adjudicate", 303)
        if not await run_in_threadpool(self.store.done):
            return RedirectResponse("/agreement", 303)
        disputed = await run_in_threadpool(self.store.disputed)
        open_ = [d for d in disputed if not d[2]]
        return self._page(request, "adjudicate.html", disputed=disputed, current=open_[0] if open_ else None)

    def chosen(self, form: dict[str, str]) -> str:
        """The label of a form, which sends its number; empty (refused by the store) for anything else."""
        number = form.get("label", "")
        known = dict(zip(map(str, range(len(self.store.labels))), self.store.labels))
        return known.get(number, "")

    def _page(self, request: Request, name: str, **more: Any) -> HTMLResponse:
        text = (
            _environment()
            .get_template(name)
            .render(store=self.store, who=visitor(request.scope), csrf=form_token(request.scope), key_of=key_of, **more)
        )
        return HTMLResponse(text)


async def fields(request: Request) -> dict[str, str]:
    """The fields of an url-encoded form; the last of a doubled name counts."""
    return dict(
        parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=100)
    )


def key_of(item: Item) -> str:
    """The name of an item in a form: its id may hold characters that a page cannot carry."""
    return digest(item.id)[:24]


def agreement_of(store: Store) -> list[tuple[str, Any]]:
    """Agreement of the raters' independent labels, before any adjudication."""
    from robustjudge.profile import panel
    from robustjudge.profile.table import collect

    table = collect(store.rows())
    if panel.overlap(table) == 0:
        return []
    figures = panel.agreement(table, store.labels).section["agreement"]
    names = {"kappa": "Cohen's kappa", "fleiss_pooled": "Fleiss' kappa", "ac1": "Gwet's AC1", "raw": "raw agreement"}
    return [(names[k], figures[k]) for k in names if k in figures and not (k == "fleiss_pooled" and "kappa" in figures)]


def _asset(name: str, kind: str) -> Any:
    body = (files("robustjudge.labelling") / "static" / name).read_bytes()

    async def serve(request: Request) -> Response:
        return Response(body, media_type=kind)

    return serve


async def _nothing(request: Request) -> Response:
    return Response(status_code=204)


def app_of(store: Store) -> Starlette:
    """The application over a store; put the guard in front of it (:class:`robustjudge.web.Server` does)."""
    pages = Labelling(store)
    return Starlette(
        routes=[
            Route("/", pages.home),
            Route("/label", pages.label, methods=["POST"]),
            Route("/agreement", pages.agreement),
            Route("/adjudicate", pages.adjudicate, methods=["GET", "POST"]),
            Route("/favicon.ico", _nothing),
            Route("/static/label.css", _asset("label.css", "text/css")),
            Route("/static/label.js", _asset("label.js", "text/javascript")),
        ]
    )
