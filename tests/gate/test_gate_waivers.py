"""Waivers: what applies, what is ignored and named, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
import yaml

from robustjudge.errors import ConfigError
from robustjudge.gate.check import check
from robustjudge.gate.contracts import report
from robustjudge.gate.evidence import evidence
from robustjudge.gate.junit import junit
from robustjudge.gate.sarif import sarif
from robustjudge.gate.summary import summary
from robustjudge.gate.waivers import read_waivers

TODAY = date(2026, 3, 1)
Write = Callable[[str, str], Path]


def waiver(run: Path, **changes: object) -> dict[str, object]:
    e = evidence(run)
    scope = {"judge": e.judge, "prompt_hash": e.prompt_hash, "category": "format_hacking"}
    base = {
        "owner": "platform team",
        "approver": "head of evaluation",
        "reason": "internal tool; outputs are read by people before use",
        "scope": scope,
        "created": "2026-02-01",
        "expires": "2026-04-01",
    }
    return {**base, **changes}


def test_a_valid_one_passes_and_is_visible_everywhere(weak_run: Path, written: Write) -> None:
    file = written("w.yaml", yaml.safe_dump([waiver(weak_run)]))
    e, d = check(weak_run, waivers=read_waivers(file), today=TODAY)
    assert (d.verdict, d.words) == ("pass", "pass with accepted risk")
    document = report(e, d)
    assert document["failed_count"] > 0  # accepted is not removed
    (used,) = document["x_robustjudge"]["waivers"]
    assert used["state"] == "applies" and len(used["findings"]) == document["failed_count"]
    assert used["id"] in junit(e, d)
    assert '"status": "accepted"' in sarif(d) and "head of evaluation" in sarif(d)
    assert "read by people" in summary(e, d)
    rate = next(c for c in d.categories if c.category == "format_hacking").bounds
    assert rate.value is not None and rate.value > 0.5  # nor do rates change


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"expires": "2026-02-20"}, "expired on 2026-02-20"),
        ({"created": "2026-03-20"}, "begins on 2026-03-20"),
        ({"scope": {"judge": "other", "prompt_hash": "x", "category": "format_hacking"}}, "is for judge"),
        ({"scope": {"judge": "planted", "prompt_hash": "0" * 16, "category": "format_hacking"}}, "is for prompt"),
    ],
)
def test_an_expired_or_mismatching_one_is_ignored_and_named(
    weak_run: Path, written: Write, changes: dict[str, object], word: str
) -> None:
    file = written("w.yaml", yaml.safe_dump([waiver(weak_run, **changes)]))
    _, d = check(weak_run, waivers=read_waivers(file), today=TODAY)
    assert d.verdict == "fail"
    assert any(word in n and "count in full" in n for n in d.notes)


def test_finding_ids_accept_only_themselves(weak_run: Path, written: Write) -> None:
    _, d = check(weak_run, today=TODAY)
    failed = [o.id for o in d.outcomes if o.failed]
    e = evidence(weak_run)
    scope = {"judge": e.judge, "prompt_hash": e.prompt_hash, "findings": failed[:-1]}
    some = read_waivers(written("a.yaml", yaml.safe_dump([waiver(weak_run, scope=scope)])))
    assert check(weak_run, waivers=some, today=TODAY)[1].verdict == "fail"
    every = read_waivers(written("b.yaml", yaml.safe_dump([waiver(weak_run, scope={**scope, "findings": failed})])))
    assert check(weak_run, waivers=every, today=TODAY)[1].verdict == "pass"


def test_one_that_matches_nothing_warns(robust_run: Path, written: Write) -> None:
    file = written("w.yaml", yaml.safe_dump([waiver(robust_run)]))
    _, d = check(robust_run, waivers=read_waivers(file), today=TODAY)
    assert d.words == "pass"
    assert any("matches nothing" in n for n in d.notes)


def test_one_that_ends_soon_is_named(weak_run: Path, written: Write) -> None:
    file = written("w.yaml", yaml.safe_dump([waiver(weak_run)]))
    _, d = check(weak_run, waivers=read_waivers(file), today=date(2026, 3, 25))
    assert any("expires on 2026-04-01" in n for n in d.notes)


GOOD = {
    "owner": "a",
    "approver": "b",
    "reason": "c",
    "scope": {"judge": "j", "prompt_hash": "p", "category": "injection"},
    "created": "2026-01-01",
    "expires": "2026-02-01",
}


@pytest.mark.parametrize("missing", ["owner", "approver", "reason", "scope", "created", "expires"])
def test_a_missing_part_is_refused(written: Write, missing: str) -> None:
    with pytest.raises(ConfigError, match=f"waiver 1: {missing} is missing"):
        read_waivers(written("w.yaml", yaml.safe_dump([{k: v for k, v in GOOD.items() if k != missing}])))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scope": {"judge": "*", "prompt_hash": "p", "category": "x"}}, "wildcard"),
        ({"scope": {"judge": "j", "prompt_hash": "abc*", "category": "x"}}, "wildcard"),
        ({"scope": {"judge": "j", "prompt_hash": "p"}}, "neither findings nor a category"),
        ({"scope": {"judge": "j", "prompt_hash": "p", "findings": "abc"}}, "list of finding ids"),
        ({"scope": {"judge": "j", "prompt_hash": "p", "categroy": "x"}}, "did you mean 'category'"),
        ({"expires": "2026-05-01"}, "at most 90"),
        ({"expires": "2025-05-01"}, "before created"),
        ({"expires": "soon"}, "a day like"),
        ({"owner": 3}, "a text that says something"),
        ({"aproved": "x"}, "unknown key"),
    ],
)
def test_a_malformed_one_is_refused(written: Write, changes: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as fault:
        read_waivers(written("w.yaml", yaml.safe_dump([{**GOOD, **changes}])))
    assert fault.value.exit_code == 2


def test_a_file_may_lengthen_the_limit_and_be_empty(written: Write) -> None:
    long = {"max_days": 120, "waivers": [{**GOOD, "expires": "2026-04-20"}]}
    assert len(read_waivers(written("w.yaml", yaml.safe_dump(long)))) == 1
    assert read_waivers(written("e.yaml", "")) == ()
    with pytest.raises(ConfigError, match="count of days"):
        read_waivers(written("x.yaml", "max_days: long\nwaivers: []\n"))
