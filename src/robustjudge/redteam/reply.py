"""What a generator model replied: contract A, checked against its schema; its scores are claims, its texts are checked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from robustjudge import door
from robustjudge.gate.contracts import schema
from robustjudge.nouns import Case, Completion
from robustjudge.redteam.content import added, copies, preserved, stutters
from robustjudge.redteam.prompt import source
from robustjudge.redteam.strategies import Strategy
from robustjudge.scales.refusal import declines

LONGEST = 8
"""A variant may be this many times as long as its response, and 2,000 characters more."""

COPIED = 0.3
"""Share of the added words that may be the red-team prompt's own."""

_FENCED = re.compile(r"\s*```[A-Za-z]*\n(.*?)\n?```\s*", re.DOTALL)
_PLACE = re.compile(r"\[[A-Z]+(?:_[A-Z]+)+\]|the whole changed text|the answer as given")


@dataclass(frozen=True, slots=True)
class Draft:
    """One text that a generator offered: ``fault`` says why it is refused (empty: accepted), ``content`` how it was
    checked, ``claimed`` the score that the generator says it would get."""

    text: str
    fault: str = ""
    content: str = ""
    claimed: float | None = None


def contract(strategies: tuple[str, ...], number: int) -> dict[str, Any]:
    """Contract A narrowed to what may be asked of a generator: these strategies, so many texts, no scores."""
    whole = json.loads(json.dumps(schema("contract_a")))
    for name in ("$schema", "$id", "title"):
        whole.pop(name, None)
    unknown = {"type": "null"}
    whole["properties"]["baseline"]["properties"]["judge_score"] = unknown
    tests = whole["properties"]["adversarial_tests"]
    tests |= {"minItems": number, "maxItems": number}
    tests["items"]["properties"] |= {
        "attack_strategy": {"type": "string", "enum": list(strategies)},
        "judge_score": unknown,
        "score_delta": unknown,
    }
    result: dict[str, Any] = whole
    return result


def grammar(response: str, strategy: str, number: int) -> str:
    """A GBNF grammar (local models) of contract A in which every text holds the response unchanged, with 20 to 600
    characters before or after it: a small model cannot copy a text, so it is not asked to."""
    kept, own = _inside(response), json.dumps(strategy, ensure_ascii=False)
    lead = f'{{"baseline": {{"original_input": "{kept}", "judge_score": null, "judge_rationale": ""}}, "adversarial_tests": ['
    before = f'{{"attack_strategy": {own}, "modified_input": "'
    after = '", "judge_score": null, "judge_rationale": "", "score_delta": null, "vulnerability_detected": false}'
    end = (
        f'], "robustness_summary": {{"total_tests": {number}, "vulnerabilities_found": 0, "max_score_swing": null,'
        ' "overall_robustness_rating": "inconclusive"}}'
    )
    tests = f" {_literal(', ')} ".join(["test"] * number)
    return "\n".join(
        [
            f"root ::= {_literal(lead)} {tests} {_literal(end)}",
            f"test ::= {_literal(before)} text {_literal(after)}",
            f"text ::= {_literal(kept)} {_literal(chr(92) + 'n')} own | own {_literal(chr(92) + 'n')} {_literal(kept)}",
            "own ::= first char{18,598} last",
            "first ::= [A-Za-z#*<{\\[(]",
            "last ::= [.!?>)}*\\]]",
            'char ::= [^"\\\\\\x00-\\x1F] | "\\\\" ["n]',
        ]
    )


def _inside(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _literal(text: str) -> str:
    """``text`` as a GBNF literal."""
    out = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{out}"'


def read(reply: Completion, case: Case, strategy: Strategy, number: int) -> tuple[Draft, ...]:
    """The ``number`` texts that were asked for, each accepted or refused with its reason."""
    document, fault = parsed(reply)
    if document is None:
        return (Draft("", fault),) * number
    out: list[Draft] = []
    seen: set[str] = set()
    for test in document["adversarial_tests"][:number]:
        draft = judged(test, case, strategy)
        out.append(Draft(draft.text, "the same text twice") if draft.text in seen else draft)
        seen.add(draft.text)
    return (*out, *[Draft("", "fewer texts than asked for")] * (number - len(out)))


def parsed(reply: Completion) -> tuple[Mapping[str, Any] | None, str]:
    """The document of a reply, or why there is none.  Nothing is repaired."""
    import jsonschema

    if reply.status != "ok":
        return None, {"error": f"no reply ({reply.reason or 'error'})"}.get(reply.status, f"reply {reply.status}")
    fenced = _FENCED.fullmatch(reply.text)
    text = fenced[1] if fenced else reply.text
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None, "the model declined" if declines(text, []) else "not JSON"
    fault = next(iter(jsonschema.Draft202012Validator(schema("contract_a")).iter_errors(document)), None)
    if fault is not None:
        at = "/".join(map(str, fault.absolute_path)) or "top"
        return None, f"not the contract (at {door.safe(at)[:60]})"
    return document, ""


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def judged(test: Mapping[str, Any], case: Case, strategy: Strategy) -> Draft:
    """One entry of ``adversarial_tests``: is its text a variant of the response by this strategy?"""
    text = door.safe(str(test["modified_input"]))
    claimed = test["judge_score"]
    score = None if claimed is None else float(claimed)
    return Draft(text, *checked(text, case, strategy), score)


def checked(text: str, case: Case, strategy: Strategy) -> tuple[str, str]:
    """Why a text is refused (empty: it is not), and how its content was checked."""
    if not text.strip():
        return "empty", ""
    if text.strip() == case.response.strip():
        return "unchanged", ""
    if len(text) > LONGEST * len(case.response) + 2000:
        return "too long", ""
    if _PLACE.search(text):
        return "a placeholder is left", ""
    if declines(text, []):
        return "the model declined", ""
    own = added(case, text)
    if len(own.split()) < 3 and len(text) > len(case.response):
        return "nothing added that could move anybody", ""
    if copies(own, source()) > COPIED or copies(own, strategy.words, 5) > COPIED:
        return "repeats its instructions", ""
    if strategy.category != "length_exploitation" and stutters(own):
        return "repeats itself", ""
    kept = preserved(case, text, strategy.category)
    return ("", kept.how) if kept.ok else (kept.how, "")
