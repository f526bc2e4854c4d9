"""What the prompt optimiser found, as JSON and as Markdown: every rate with its interval, its items and its families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from robustjudge.measures.bootstrap import cluster_bootstrap
from robustjudge.measures.optimism import objective_rate, optimism_gap
from robustjudge.nouns import Estimate
from robustjudge.reports.markdown import code, plain, table
from robustjudge.reports.words import percent
from robustjudge.search import Result
from robustjudge.search.book import Config

if TYPE_CHECKING:
    from robustjudge.optimise import Optimised, Published

SCHEMA = "robustjudge.optimise/1"


def evidence(found: Optimised) -> dict[str, Any]:
    """Everything a reader needs to trust (or not) the outcome."""
    a, grid = found.answer, found.grid
    named = {"start": a.start, "answer": a.config, "picked": a.picked}
    out: dict[str, Any] = {
        "schema": SCHEMA,
        "status": a.status,
        "protocol": found.protocol,
        "families": list(a.families),
        "held_out": list(a.held_out),
        "co_training_found": list(a.found),
        "prompts": {name: prompt(found, c) for name, c in named.items()},
        "changed": {
            k: [v, grid.names(a.config)[k]] for k, v in grid.names(a.start).items() if grid.names(a.config)[k] != v
        },
        "race": [
            {"items": b.items, "prompts": b.before, "left": b.after, "calls": b.spent, "ended": b.ended}
            for b in a.blocks
        ],
        "confirmation": [
            {
                "families": list(c.families),
                "log_e": round(c.log_e, 4),
                "needed": round(c.needed, 4),
                "clean_accuracy": [c.start_accuracy, c.accuracy],
                "parse_rate": c.parse,
                "improved": c.improved,
                "kept": c.kept,
                "why": c.why,
            }
            for c in a.checks
        ],
        "calls": {"planned_for": a.calls, "budget": a.budget, "exhaustive": a.exhaustive},
        "grid": {"prompts": grid.size, "options": dict(zip([c.code for c in grid.components], grid.sizes))},
        "notes": list(found.notes),
    }
    if found.published is not None:
        out["algorithm_1"] = _published(found, found.published)
    return out


def prompt(found: Optimised, config: Config) -> dict[str, Any]:
    """One prompt: its options, its objective on training and on test items under the families trained on, the optimism
    gap between them, and its objective under families that only the test met."""
    a = found.answer
    train, test = rates(a.train[config]), rates([r for r in a.test[config] if r.family in a.families])
    unseen = rates([r for r in a.test[config] if r.family in a.held_out])
    return {
        "options": found.grid.names(config),
        "tokens": found.grid.tokens(config, found.protocol),
        "train": objective_rate(train).as_dict(),
        "test": objective_rate(test).as_dict(),
        "optimism_gap": optimism_gap(train, test).as_dict(),
        "unseen_families": objective_rate(unseen).as_dict() if unseen else None,
        "by_family": {
            f: _mean([r.won for r in a.test[config] if r.family == f]).as_dict() for f in (*a.families, *a.held_out)
        },
        "clean_accuracy": _mean([r.right for r in _once(a.test[config])]).as_dict(),
        "position_consistency": (
            Estimate.undefined("one response at a time has no position")
            if found.protocol == "pointwise"
            else _mean([r.steady for r in _once(a.test[config])])
        ).as_dict(),
        "parse_rate": cluster_bootstrap(
            [float(r.read) for r in a.test[config]],
            [r.item for r in a.test[config]],
            weights=[float(r.asked) for r in a.test[config]],
        ).as_dict(),
    }


def rates(results: Sequence[Result], name: str = "won") -> list[list[float]]:
    """Items x families of one share."""
    rows: dict[str, list[float]] = {}
    for r in results:
        rows.setdefault(r.item, []).append(float(getattr(r, name)))
    return list(rows.values())


def _once(results: Sequence[Result]) -> list[Result]:
    return list({r.item: r for r in results}.values())


def _mean(values: Sequence[float]) -> Estimate:
    return cluster_bootstrap(values)


def _published(found: Optimised, p: Published) -> dict[str, Any]:
    train, test = (rates([r for r in x if r.family == p.family], "published") for x in (p.train, p.test))
    return {
        "options": found.grid.names(p.ascent.config),
        "objective": f"{'ASR' if found.protocol == 'pointwise' else 'P-ASR'} under {p.family}",
        "sweeps": p.ascent.sweeps,
        "evaluations": p.ascent.evaluations,
        "stopped": p.ascent.stopped,
        "trace": [-v for v in p.ascent.trace],
        "train": objective_rate(train).as_dict(),
        "test": objective_rate(test).as_dict(),
        "optimism_gap": optimism_gap(train, test).as_dict(),
        "wins": objective_rate(rates(p.test)).as_dict(),
        "clean_accuracy": _mean([r.right for r in _once(p.test)]).as_dict(),
        "parse_rate": sum(r.read for r in p.test) / max(1, sum(r.asked for r in p.test)),
        "calls": p.calls,
    }


# --------------------------------------------------------------------------- Markdown


def markdown(e: Mapping[str, Any]) -> str:
    """The evidence as a page."""
    better = e["status"] == "improved"
    out = ["# Judge prompt optimisation", "", f"**{verdict(e)}**", ""]
    facts = [
        ("Judge", e.get("judge")),
        ("Protocol", e["protocol"]),
        ("Cases", e.get("cases")),
        ("Start prompt", e.get("prompt")),
    ]
    out += [f"- {name}: {code(value)}" for name, value in facts if value]
    out.append(f"- Families trained on: {plain(', '.join(e['families']))}")
    out.append(f"- Families that only the test met: {plain(', '.join(e['held_out'])) or 'none'}")
    if e["co_training_found"]:
        out.append(f"- Found by co-training: {plain(', '.join(e['co_training_found']))}")
    calls = e["calls"]
    saved = f"; every prompt on every training item would have cost {calls['exhaustive']:,}"
    out += [f"- Judge calls: {calls['planned_for']:,} of at most {calls['budget']:,}{saved}", ""]
    if e["changed"]:
        out += ["## What changed", ""]
        out += table(["component", "before", "after"], [[k, plain(a), plain(b)] for k, (a, b) in e["changed"].items()])
    names = ["start", "answer"] if better else ["start", "picked"]
    shown = {n: e["prompts"][n] for n in names if n == "start" or e["prompts"][n] != e["prompts"]["start"]}
    out += ["## Figures", ""]
    heads = {
        "train": "on training items",
        "test": "on test items",
        "optimism_gap": "optimism gap",
        "unseen_families": "unseen families",
        "clean_accuracy": "clean accuracy",
        "position_consistency": "position consistency",
        "parse_rate": "read",
    }
    rows = [[n, *(_cell(p[k], k == "optimism_gap") for k in heads), str(p["tokens"])] for n, p in shown.items()]
    out += table(["prompt", *heads.values(), "tokens"], rows)
    won = (
        "Win rate of the attacked text" if e["protocol"] != "pointwise" else "Share of attacked texts whose score rose"
    )
    out.append(f"{won} in the worst family; 95 % intervals by cluster bootstrap.")
    out += ["", "## On the test, by family", ""]
    named = (*e["families"], *e["held_out"])
    out += table(["family", *shown], [[plain(f), *(_cell(p["by_family"][f]) for p in shown.values())] for f in named])
    out += ["## The race", ""]
    out += table(
        ["items", "prompts", "left", "calls so far", "ended"],
        [[str(b["items"]), str(b["prompts"]), str(b["left"]), f"{b['calls']:,}", plain(b["ended"])] for b in e["race"]],
    )
    for c in e["confirmation"]:
        state = "kept" if c["kept"] else c["why"]
        told = f"log e-value {c['log_e']:.2f} of {c['needed']:.2f} needed; parse rate {percent(c['parse_rate'])} %"
        out.append(f"- Confirmation on validation items ({plain(', '.join(c['families']))}): {told}: {plain(state)}")
    if "algorithm_1" in e:
        out += _baseline(e["algorithm_1"])
    out += ["", *(f"- {plain(n)}" for n in e["notes"])]
    return "\n".join(out).rstrip() + "\n"


def verdict(e: Mapping[str, Any]) -> str:
    """One sentence: whether the prompt is better, and by how much on what nobody had seen."""
    start, answer = e["prompts"]["start"], e["prompts"]["answer"]
    if e["status"] == "improved":
        unseen = (
            ""
            if not e["held_out"]
            else (
                f"; under attacks that only the test met {_cell(answer['unseen_families'])} against"
                f" {_cell(start['unseen_families'])}"
            )
        )
        return (
            f"Improved: on unseen items the worst family wins {_cell(answer['test'])}; against the start prompt it won"
            f" {_cell(start['test'])}{unseen}."
        )
    why = e["confirmation"][-1]["why"] if e["confirmation"] else "nothing was confirmed"
    return f"No significant improvement: keep the start prompt ({why})."


def _baseline(b: Mapping[str, Any]) -> list[str]:
    return [
        "",
        "## Algorithm 1 (coordinate ascent) on the same budget",
        "",
        f"- Objective {plain(b['objective'])}; {b['evaluations']} evaluations in {b['sweeps']} sweeps; {b['calls']:,} calls",
        f"- On the items that picked it {_cell(b['train'])}, on test items {_cell(b['test'])};"
        f" optimism gap {_cell(b['optimism_gap'], signed=True)}",
        f"- Clean accuracy {_cell(b['clean_accuracy'])}; read {percent(b['parse_rate'])} % (it has no constraint on either)",
    ]


def _cell(e: Mapping[str, Any] | None, signed: bool = False) -> str:
    if e is None:
        return "none held out"
    if e["value"] is None:
        return f"undefined ({plain(e['reason'] or 'no reason')})"
    low, high = e["low"], e["high"]
    if signed:
        return f"{100 * e['value']:+.0f} points ({100 * low:+.0f} to {100 * high:+.0f})"
    return f"{percent(e['value'])} % ({percent(low)} to {percent(high)} %, n = {e['n']})"
