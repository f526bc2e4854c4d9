"""Whole runs against an endpoint that fails in every way: the run ends, each fault is a row, no number is wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from core_help import cases, go, judge, planned, rows
from endpoint_help_free import chat, error, fault, http, serving
from robustjudge.errors import QuotaExhausted

FATAL = {
    "bad request": (error(400, "bad"), ("error", "http_400")),
    "page": (fault("html"), ("error", "bad_body")),
    "garbage": (fault("garbage"), ("error", "bad_body")),
    "empty": (fault("empty"), ("error", "empty_body")),
    "overflow": (error(400, "x", "context_length_exceeded"), ("error", "context_overflow")),
    "filter": (error(400, "filtered", "content_filter"), ("refused", "content_filter")),
    "refusal": (fault("json", body=chat(None, message={"refusal": "no"})), ("refused", "refusal")),
    "cut off": (fault("json", body=chat("VERDI", choice={"finish_reason": "length"})), ("truncated", "length")),
    "null": (fault("json", body=chat(None)), ("unparsed", "")),
    "off the scale": (fault("json", body=chat("VERDICT: 85")), ("unparsed", "")),
}
PASSING = [
    fault("status", 500),
    fault("reset"),
    fault("cut"),
    fault("status", 429, {"error": {"message": "slow down"}}, {"Retry-After": "2"}),
    fault("status", 503),
]


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """A score that follows from the case: a reply that changed places would show."""
    text = body["messages"][-1]["content"]
    number = int(text.partition("Question number ")[2].partition(":")[0])
    return chat(f"Weighed.\nVERDICT: {1 + number % 10}")


def test_every_fault_is_a_row_with_its_status_and_no_number_is_wrong(tmp_path: Path) -> None:
    script = [f for f, _ in FATAL.values()] + PASSING * 3
    with serving(*script, answer=answer) as server:
        model = http(server.url)
        run = go(planned(cases(30), judges=[("remote", judge(model.name))]), tmp_path, model)
    found = rows(run.path)
    assert len(found) == 30 and run.tally.rows == 30
    statuses: Counter[tuple[str, str]] = Counter()
    for row in found:
        number = int(row["case_id"][1:])
        assert row["attack_status"] == "ok"
        for shown in row["detail"]["shown"]:
            if shown["status"] == "ok":
                assert shown["score"] == 1 + number % 10, row
            else:
                statuses[shown["status"], shown.get("reason", "")] += 1
                assert "score" not in shown and "unit" not in shown
        for arm in ("clean", "attacked"):
            assert (row[f"{arm}_score"] is None) == (row[f"{arm}_status"] != "ok")
    kinds = Counter(status for status, _ in statuses.elements())
    assert kinds == Counter(status for _, (status, _) in FATAL.values())
    for _, (status, reason) in FATAL.values():
        if status == "error":
            assert statuses[status, reason] >= 1, (status, reason, statuses)
    assert {k: v for k, v in run.tally.faults.items() if k.startswith("http_5")} == {}


def test_an_endpoint_that_hangs_costs_its_timeout_and_becomes_rows(tmp_path: Path) -> None:
    with serving(*[fault("hang")] * 40, answer=answer) as server:
        model = http(server.url, timeout=0.3)
        run = go(planned(cases(1), judges=[("remote", judge(model.name))], cleans=1), tmp_path, model)
    (row,) = rows(run.path)
    assert (row["clean_status"], row["attacked_status"], row["reason"]) == ("error", "error", "timeout")


def test_an_endpoint_that_is_down_gives_error_rows_never_scores(tmp_path: Path) -> None:
    with serving() as server:
        url = server.url
    model = http(url)
    run = go(planned(cases(3), judges=[("remote", judge(model.name))]), tmp_path, model)
    assert [(r["attacked_status"], r["attacked_score"], r["attack_status"]) for r in rows(run.path)] == [
        ("error", None, "ok")
    ] * 3
    with serving(answer=answer) as server:
        well = http(server.url)
        well.name = model.name
        again = go(
            planned(cases(3), judges=[("remote", judge(model.name))]), tmp_path, well, resume=run, retry_errors=True
        )
    assert [r["attacked_status"] for r in rows(again.path)] == ["ok"] * 3


def test_a_spent_quota_stops_the_run_after_one_request_and_says_so(tmp_path: Path) -> None:
    quota = error(429, "You exceeded your current quota", "insufficient_quota")
    with serving(*[quota] * 100, latency=0.02) as server:
        model = http(server.url)
        with pytest.raises(QuotaExhausted) as told:
            go(planned(cases(20), judges=[("remote", judge(model.name))]), tmp_path, model)
        assert told.value.exit_code == 4 and len(server.requests) == 1


def test_a_bad_verdict_is_never_retried(tmp_path: Path) -> None:
    with serving(answer=lambda body: chat("I would rather not say.")) as server:
        model = http(server.url)
        run = go(planned(cases(2), judges=[("remote", judge(model.name))]), tmp_path, model)
        assert len(server.requests) == 2 * 3 == run.tally.sent
    assert [r["attacked_status"] for r in rows(run.path)] == ["unparsed"] * 2


def test_the_key_is_in_no_file_of_the_run(tmp_path: Path) -> None:
    from endpoint_help_free import KEY

    echo = error(401, f"Incorrect API key provided: {KEY}.", "invalid_api_key")
    with serving(*[echo] * 3, answer=answer) as server:
        model = http(server.url)
        go(planned(cases(3), judges=[("remote", judge(model.name))]), tmp_path, model)
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert KEY.encode() not in file.read_bytes(), file
