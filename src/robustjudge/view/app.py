"""The pages over stored runs; put the guard in front of them (:class:`robustjudge.web.Server` does)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from robustjudge.engine.folder import TABLE, Folder
from robustjudge.errors import RobustJudgeError
from robustjudge.exports import compare
from robustjudge.view.pages import Missing, assets, page, told, whole
from robustjudge.view.runs import FILTERS, NUMBERS, ORDERS, SIZE, Dials, Runs, again, choices, declared, meant, rows
from robustjudge.view.trial import text_of, trial_of

FIGURES = ("asr", "shift", "win", "tie", "top_score_rate", "decision_flip_rate")


class View:
    """What each address shows.  Handlers are plain functions: they run in threads, for reading a run may take a while."""

    def __init__(self, root: Path) -> None:
        self.runs = Runs(root)

    def home(self, request: Request) -> Response:
        return page(request, "runs.html", runs=self.runs.listed(), root=str(self.runs.root))

    def run(self, request: Request) -> Response:
        """The trials of a run that match the filters, page by page."""
        name, path, query = self._at(request)
        query = meant(path, query)
        number = _number(query.get("page", ""))
        order = query.get("order", "cell")
        found, n = rows(path, query, order, number)
        chosen = {c: query.get(c, "") for c in FILTERS}
        return page(
            request,
            "run.html",
            name=name,
            rows=found,
            n=n,
            number=number,
            last=max(0, (n - 1) // SIZE),
            chosen=chosen,
            choices=choices(path),
            order=order,
            orders=tuple(ORDERS),
            manifest=Folder(path).manifest(),
        )

    def trial(self, request: Request) -> Response:
        name, path, _ = self._at(request)
        t = trial_of(path / TABLE, request.path_params["cell"])
        if t is None:
            raise Missing("no such trial in this run")
        return page(request, "trial.html", name=name, t=t)

    def text(self, request: Request) -> Response:
        _, path, _ = self._at(request)
        return whole(text_of(path / TABLE, request.path_params["hash"]))

    def decide(self, request: Request) -> Response:
        """Thresholds and policy turned on the stored rows; no call is made."""
        name, path, query = self._at(request)
        query, held = meant(path, query), choices(path)
        decision: Any = None
        found: list[Any] = []
        fault = ""
        query.setdefault("policy", declared(path))
        try:
            dials = Dials.of(query, held["judge"])
            other = self.runs.path(dials.baseline) if dials.baseline else None
            decision, found = again(path, dials, other)
        except RobustJudgeError as wrong:
            fault = str(wrong)
        values = {n: query.get(n) or f"{usual[0]:g}" for n, usual in NUMBERS.items()}
        chosen = {k: query.get(k, "") for k in ("judge", "defense", "rule", "policy", "waivers", "baseline")}
        return page(
            request,
            "decide.html",
            400 if fault else 200,
            name=name,
            d=decision,
            panels=found,
            fault=fault,
            values=values,
            chosen=chosen,
            choices=held,
            figures=FIGURES,
            others=[n for n in self.runs.paths() if n != name],
        )

    def compare(self, request: Request) -> Response:
        """Two runs side by side: the trials that changed sides, with both replies."""
        query = dict(request.query_params)
        names = tuple(self.runs.paths())
        a, b = query.get("a", ""), query.get("b", "")
        result = None
        fault = ""
        if a and b:
            try:
                left, right = query.get("judge_a", ""), query.get("judge_b", "")
                judges = (left, right or left) if left else None
                tau = Dials.of(query, ()).values["tau"]
                result = compare(self.runs.path(a), self.runs.path(b), judges, tau)
            except RobustJudgeError as wrong:
                fault = str(wrong)
        given = {k: query.get(k, "") for k in ("a", "b", "judge_a", "judge_b")}
        tau_text = query.get("tau") or "1"
        return page(
            request,
            "compare.html",
            400 if fault else 200,
            names=names,
            given=given,
            tau=tau_text,
            result=result,
            fault=fault,
        )

    def _at(self, request: Request) -> tuple[str, Path, dict[str, str]]:
        name = request.path_params["name"]
        return name, self.runs.path(name), dict(request.query_params)


def _number(text: str) -> int:
    return int(text) if text.isdigit() and len(text) < 10 else 0


def app_of(root: Path) -> Starlette:
    """The application over a folder of runs (or one run)."""
    v = View(root)
    return Starlette(
        routes=[
            Route("/", v.home),
            Route("/compare", v.compare),
            Route("/run/{name}", v.run),
            Route("/run/{name}/decide", v.decide),
            Route("/run/{name}/trial/{cell}", v.trial),
            Route("/run/{name}/text/{hash}", v.text),
            *assets(),
        ],
        exception_handlers={RobustJudgeError: told},
    )
