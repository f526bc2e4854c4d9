"""Two back ends on the same weights are two judges: how often llama.cpp and torch agree on the embedded model.

    python benchmarks/backends.py [--cases 100] [--template brief] [--model smollm2] [--log FILE]

Each case's weak response is judged pointwise; both engines tell the probabilities of the verdict labels after the same
prompt.  Printed: agreement of the likeliest label with a Wilson interval, and the distribution of |difference| of the
log-odds of the expected score.  The models run one after the other, never at once.  With ``--log`` every answer is kept
as a JSON line, and what FILE holds is not asked again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import mean, median

from robustjudge import template
from robustjudge.datasets.builtin_cases import builtin
from robustjudge.judges import Prompted
from robustjudge.measures.intervals import wilson
from robustjudge.models.registry import open_model
from robustjudge.nouns import LabelCall, Weights
from robustjudge.objective import margin
from robustjudge.protocols import Pointwise


def kept(log: Path | None, model: str) -> list[Weights]:
    """The answers of a model in a log."""
    rows = [json.loads(x) for x in log.read_text("utf-8").splitlines()] if log and log.is_file() else []
    return [Weights(tuple(r["logprobs"]), (), r["status"], r["reason"]) for r in rows if r["model"] == model]


def keep(log: Path | None, model: str, found: Sequence[Weights]) -> None:
    """Append a model's answers to a log."""
    rows = [{"model": model, "logprobs": w.logprobs, "status": w.status, "reason": w.reason} for w in found]
    if log:
        with log.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


async def weighed(model: str, calls: Sequence[LabelCall], log: Path | None) -> list[Weights]:
    """Label log-probabilities from one back end."""
    out = kept(log, model)
    opened = open_model(model)
    try:
        for i in range(len(out), len(calls), 5):
            batch = tuple(LabelCall(replace(c.call, model=model), c.labels, c.lead) for c in calls[i : i + 5])
            found: tuple[Weights, ...] = await opened.weigh(batch)  # type: ignore[attr-defined]
            out += found
            keep(log, model, found)
            print(f"{model}: {len(out)} of {len(calls)}", flush=True)
        return out[: len(calls)]
    finally:
        await opened.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--template", default="brief")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--log", type=Path)
    given = parser.parse_args()
    judge = Prompted(f"hf/{given.model}", template(given.template))
    calls = []
    cases = list(builtin())
    texts = [(c, c.response) for c in cases] + [(c, c.reference) for c in cases if c.reference]
    for case, text in islice(texts, given.cases):
        (slate,) = Pointwise().slates(case, text, "clean/0")
        call = judge.call(slate, judge.template.form(1))
        if call.readout is None:
            raise SystemExit(f"template {given.template} has no list of labels")
        calls.append(LabelCall(call, call.readout.labels, call.readout.lead))
    one = asyncio.run(weighed(f"llamacpp/{given.model}", calls, given.log))
    other = asyncio.run(weighed(f"hf/{given.model}", calls, given.log))
    agree, gaps, lost = 0, [], 0
    for call, a, b in zip(calls, one, other, strict=True):
        if a.status != "ok" or b.status != "ok":
            lost += 1
            continue
        readout = call.call.readout
        assert readout is not None
        agree += a.logprobs.index(max(a.logprobs)) == b.logprobs.index(max(b.logprobs))
        gaps.append(abs(margin(readout, a) - margin(readout, b)))
    n = len(gaps)
    rate = wilson(agree, n)
    print(f"{n} cases, {lost} without a label in one of the engines")
    print(f"likeliest label agrees: {agree} of {n}, {rate.value} [{rate.low}, {rate.high}]")
    gaps.sort()
    print(
        f"|delta log-odds|: mean {mean(gaps):.4f}, median {median(gaps):.4f}, "
        f"90 % {gaps[int(0.9 * (n - 1))]:.4f}, largest {gaps[-1]:.4f}"
    )


if __name__ == "__main__":
    main()
