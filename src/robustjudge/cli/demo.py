"""``robustjudge demo``: the main job offline, without a key: the embedded model and two planted judges, then a report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from robustjudge.plan import Plan

app = typer.Typer(add_completion=False)

ATTACKS = ("identity", "neutral/H6", "H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8")
PAIRED = ("translation", "mathematics")
"""The two tasks that are judged pairwise as well; pairwise costs two orders a text."""

EMBEDDED = "llamacpp/smollm2"
REPLY = 15
"""What one call costs besides its new prompt tokens, in prompt tokens: a short reply."""

PLANTED = ("gameable", "perfect")


@app.command("demo")
def demo(
    minutes: Annotated[float, typer.Option(min=0.5, help="time for the embedded model's calls")] = 4.0,
    output: Annotated[Path, typer.Option("--output", "-o")] = Path("runs"),
    ledger: Annotated[Path, typer.Option(help="the project's ledger")] = Path(".robustjudge/ledger.sqlite"),
) -> None:
    """Attack three judges on the built-in cases and print a report that can be defended."""
    from robustjudge.cli.execute import finish
    from robustjudge.cli.progress import Progress
    from robustjudge.execution import Options, execute
    from robustjudge.models.pull import pull
    from robustjudge.models.registry import open_model

    pull("smollm2")
    model = open_model(EMBEDDED)
    per_task, told = affordable(model, minutes)
    typer.echo(told)
    plan, models = planned(per_task)
    total = sum(1 for _ in plan.cells())
    with Progress(total) as progress:
        done = execute(
            plan,
            Options(
                root=output,
                ledger=ledger,
                slug="demo",
                models={**models, EMBEDDED: model},
                listener=progress,
                config={},
                truth=truth(plan, models),
            ),
        )
    finish(done.path)
    typer.echo(
        "\nThe planted judges are scripted: `gameable` obeys pleas at a known rate, `perfect` knows the right answers. Their"
        "\ntrue rates stand beside the measured ones, so that you can see whether the instrument tells the truth."
        "\nNext: robustjudge init, put your judge's prompt and endpoint in robustjudge.yaml, robustjudge run."
    )


def planned(per_task: int) -> tuple[Plan, dict[str, Any]]:
    """The demo's plan and its planted models: pointwise for all tasks, pairwise for two."""
    from robustjudge.attacks import library
    from robustjudge.datasets.base import KINDS
    from robustjudge.datasets.builtin_cases import builtin
    from robustjudge.judges import Prompted
    from robustjudge.models.scripted import Gameable, perfect
    from robustjudge.plan import Plan
    from robustjudge.prompts.library import template
    from robustjudge.protocols import Pairwise, Pointwise
    from robustjudge.quality.base import default_evaluator

    cases = tuple(builtin(limit=per_task))
    knowing = perfect(cases)
    models = {"scripted/gameable": Gameable(judge=knowing), "scripted/perfect": knowing}
    brief, full = template("brief").plain(), template("robustjudge")
    judges = (
        ("smollm2-135m", Prompted(EMBEDDED, brief, constrained=True)),
        *((name, Prompted(f"scripted/{name}", full)) for name in PLANTED),
    )
    plan = Plan(
        cases=lambda: iter(cases),
        judges=judges,
        protocols=(Pointwise(), Pairwise()),
        attacks=tuple(library.attack(n, quick=True) for n in ATTACKS),
        evaluators=tuple((k, default_evaluator(k)) for k in KINDS if default_evaluator(k)),
        cleans=2,
        keep=lambda cell: cell.protocol.kind == "pointwise" or cell.case.kind in PAIRED,
    )
    return plan, models


def affordable(model: Any, minutes: float) -> tuple[int, str]:
    """How many cases per task the embedded model can judge in the time, at least 2: speed measured on one call, tokens
    counted with the prefix that calls of one case share."""
    from dataclasses import replace

    from robustjudge.execution import in_loop
    from robustjudge.judges import Prompted

    plan, _ = planned(1)
    first = replace(plan, judges=plan.judges[:1])
    judge = first.judges[0][1]
    assert isinstance(judge, Prompted)
    tokens = 0
    last = ""
    seen: set[str] = set()
    sample = None
    for cell in first.cells():
        for call in calls_of(cell):
            text = "".join(m.text for m in call.messages)
            sample = sample or call
            if text in seen:
                continue
            seen.add(text)
            tokens += model.count_tokens(text[common(last, text) :]) + REPLY
            last = text
    assert sample is not None
    started = time.monotonic()
    in_loop(lambda: model.complete(sample))  # loads the weights: not a measure of speed
    loaded = time.monotonic() - started
    started = time.monotonic()
    probe = replace(sample, messages=(*sample.messages[:-1], _longer(sample.messages[-1])), replica="forecast/0")
    in_loop(lambda: model.complete(probe))
    speed = model.count_tokens("".join(m.text for m in probe.messages)) / (time.monotonic() - started)
    seconds = tokens / speed
    fit = max(2, min(12, int(60 * minutes / seconds)))
    return fit, (
        f"embedded model: loaded in {loaded:.1f} s, about {speed:.0f} tokens/s; {tokens} prompt tokens for one case of each"
        f" task, so {fit} cases per task take about {fit * seconds / 60:.1f} min"
    )


def _longer(message: Any) -> Any:
    from dataclasses import replace

    from robustjudge.nouns import Text

    return replace(message, parts=(Text("Speed check, not a case. "), *message.parts))


def calls_of(cell: Any) -> list[Any]:
    """The judge calls of a cell whose attack asks nothing: clean and attacked, in every order."""
    from robustjudge.objective import Probe
    from robustjudge.steps import handled, run
    from robustjudge.trial import planted

    text = run(cell.attack(cell.case.sealed()), _no_asks)
    case, candidate = planted(cell, text)
    probe = Probe()
    for shown, candidate_text, replica in ((cell.case, cell.case.response, "clean/0"), (case, candidate, "final/0")):
        for slate in cell.protocol.slates(shown, candidate_text, replica, cell.seed):
            run(handled(cell.judge(slate), probe), _unweighed)
    return probe.calls


def _unweighed(ask: Any) -> Any:
    from robustjudge.nouns import Weights

    return tuple(Weights(status="error", reason="probe") for _ in ask.calls)


def _no_asks(ask: object) -> Any:
    raise TypeError(f"a heuristic attack asks nothing, but this one asked {type(ask).__name__}")


def common(a: str, b: str) -> int:
    """Length of the common prefix."""
    n = min(len(a), len(b))
    for i in range(n):
        if a[i] != b[i]:
            return i
    return n


def truth(plan: Plan, models: dict[str, Any]) -> dict[str, Any]:
    """The true success rate of each attack on each planted judge, from the judge's exact outcome distribution, averaged
    over the plan's cases: ``{judge: {protocol: {attack: rate}}}``."""
    from dataclasses import replace

    from robustjudge.judges import Prompted
    from robustjudge.models.scripted.truth import rise_rate, win_rate

    sums: dict[tuple[str, str, str], list[float]] = {}
    named = tuple((n, j) for n, j in plan.judges if isinstance(j, Prompted) and j.model in models)
    for cell in replace(plan, judges=named).cells():
        judge = cell.judge
        assert isinstance(judge, Prompted)
        calls = calls_of(cell)
        half = len(calls) // 2
        clean, hit = calls[:half], calls[half:]
        model = models[judge.model]
        if cell.protocol.kind == "pointwise":
            rate = rise_rate(model, clean[0].messages, hit[0].messages)
        else:
            rate = win_rate(model, [c.messages for c in hit], [c.readout.identities.index(0) for c in hit])
        sums.setdefault((cell.judge_name, cell.protocol.kind, cell.attack_name), []).append(rate)
    out: dict[str, Any] = {}
    for (name, protocol, attack), rates in sums.items():
        out.setdefault(name, {}).setdefault(protocol, {})[attack] = sum(rates) / len(rates)
    return out
