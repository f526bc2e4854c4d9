"""The bias report: canonical JSON of the stated shape, and a page in which foreign text is never markup."""

from __future__ import annotations

import json
from pathlib import Path

from robustjudge.bias import BiasPolicy, Finding, Report, page, write
from robustjudge.measures.intervals import wilson
from robustjudge.nouns import Estimate
from robustjudge.spec import canonical

NOTHING = Estimate.undefined("no pair with both verdicts read", low=-1.0, high=1.0)


def finding(**more: object) -> Finding:
    given: dict[str, object] = {
        "judge": "<script>alert(1)</script>\u202e", "name": "markdown", "group": "formatting", "protocol": "pointwise",
        "claim": "a <b>list</b>", "gating": True, "effect": Estimate(0.2, 0.1, 0.3, 80, "m"), "p": 0.01,
        "p_adjusted": 0.02, "retest": wilson(2, 80), "coverage": wilson(80, 80), "worst": NOTHING, "drop_p": None,
        "decision": "biased", "statement": "Markdown: {{ 7919*7907 }} <img src=x>", "flags": ("a_flag",),
        "more": {"robustness_rate": wilson(70, 80)},
    }  # fmt: skip
    return Finding(**(given | more))  # type: ignore[arg-type]


def test_foreign_text_is_shown_and_never_runs(tmp_path: Path) -> None:
    report = Report(
        (finding(), finding(effect=NOTHING, decision="inconclusive", gating=False)), BiasPolicy(), "<p>", "r"
    )
    html = page(report)
    assert "<script" not in html and "<img" not in html and "{{ 7919*7907 }}" in html and "62615533" not in html
    assert "\u202e" not in html and "\\u202e" in html and "default-src 'none'" in html
    assert "undefined: no pair with both verdicts read" in html and "(exploratory)" in html
    written = write(report, tmp_path / "out")
    text = written["json"].read_text()
    assert text == canonical(json.loads(text)) + "\n"
    assert json.loads(text)["findings"][1]["effect"]["value"] is None


def test_exit_codes() -> None:
    def code(*decisions: str, gating: bool = True) -> int:
        found = tuple(finding(decision=d, gating=gating) for d in decisions)
        return Report(found, BiasPolicy(), "p").exit_code

    assert code("bounded") == 0 and code("bounded", "inconclusive") == 3 and code("inconclusive", "biased") == 1
    assert code("degenerate") == 1 and code("biased", gating=False) == 3 and code() == 3
