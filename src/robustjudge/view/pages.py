"""How the local pages are rendered: every value is data, escaped and with hidden characters visible; nothing inline."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from robustjudge.errors import RobustJudgeError
from robustjudge.reports.texts import one_line, visible
from robustjudge.web.guard import form_token, visitor


def _text(value: Any) -> Any:
    """What an expression of a template becomes: visible, escaped text, whatever it was."""
    if isinstance(value, Markup):
        return value
    return escape(visible("" if value is None else str(value)))


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates of the local pages; those of ``view`` are shared."""
    env = Environment(
        loader=ChoiceLoader([PackageLoader("robustjudge.view", "pages"), PackageLoader("robustjudge.review", "pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_text,
    )
    env.filters["line"] = one_line
    env.filters["exact"] = escape  # for what a visitor edits: escaped, hidden characters kept as they are
    env.filters["figure"] = figure
    env.filters["thousands"] = lambda n: f"{n:,}"
    return env


def figure(x: float | None) -> str:
    """A score as people write it; a dash for none."""
    return "–" if x is None or x != x else f"{x:.4g}"


def page(request: Request, template: str, status: int = 200, /, **more: Any) -> HTMLResponse:
    """A rendered page for the visitor of a request."""
    who, csrf = visitor(request.scope), form_token(request.scope)
    return HTMLResponse(environment().get_template(template).render(who=who, csrf=csrf, **more), status)


async def posted(request: Request) -> dict[str, str]:
    """The fields of an url-encoded form, the first value of each."""
    fields = parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=1000)
    return {k: v[0] for k, v in fields.items()}


async def told(request: Request, fault: Exception) -> Response:
    """An error of the tree as a page that says what to do."""
    return page(request, "told.html", 404 if isinstance(fault, Missing) else 400, text=str(fault))


class Missing(RobustJudgeError):
    """What an address names is not there."""


def whole(text: str | None) -> Response:
    """One stored text, whole and plain: never markup."""
    if text is None:
        return PlainTextResponse("This text is not stored in the run.", 404)
    return PlainTextResponse(text, headers={"content-disposition": 'inline; filename="text.txt"'})


def assets() -> list[Route]:
    """The style sheet and the script of the local pages."""
    kinds = {"pages.css": "text/css", "keys.js": "text/javascript"}
    sent = [Route(f"/static/{name}", _asset(name, kind)) for name, kind in kinds.items()]
    return [*sent, Route("/favicon.ico", _nothing)]


async def _nothing(request: Request) -> Response:
    """Browsers ask for an icon; there is none."""
    return Response(status_code=204)


def _asset(name: str, kind: str) -> Any:
    body = (files("robustjudge.view") / "static" / name).read_bytes()

    async def send(request: Request) -> Response:
        return Response(body, media_type=kind)

    return send
