"""Contracts A and B, JUnit, SARIF and the summaries: their schemas, their counts, and hostile text in every field."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from gate_runs import cases, plan, run
from gate_synthetic import evidence_of
from hypothesis import given, settings, strategies as st
from lxml import etree
from test_gate_decide import moved, quiet

from robustjudge.errors import DataError
from robustjudge.execution import Options, execute
from robustjudge.gate import contracts
from robustjudge.gate.check import check
from robustjudge.gate.decide import Decision, decide
from robustjudge.gate.evidence import Evidence, Reply
from robustjudge.gate.failures import Outcome
from robustjudge.gate.junit import junit, legal
from robustjudge.gate.policy import Policy
from robustjudge.gate.sarif import relative, sarif
from robustjudge.gate.summary import MARKER, annotate, code, comment, log_safe, plain, stopped, summary
from robustjudge.models.scripted import Copycat, Down, Echo, Refuser, Table
from robustjudge.prompts.lint import Finding

SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"
XSD = etree.XMLSchema(etree.parse(SCHEMAS / "junit.xsd"))
JENKINS = etree.XMLSchema(etree.parse(SCHEMAS / "junit-10.xsd"))
SARIF = json.loads((SCHEMAS / "sarif_used.json").read_text("utf-8"))
STANDARD = json.loads((SCHEMAS / "sarif-2.1.0.json").read_text("utf-8"))

HOSTILE = (
    "bad \x01\x1b[31m ]]> & <script>alert(1)</script> | `a``b` @everyone [x](http://e.vil/) ::error::pwn\r\n##[command]x"
    " ![i](http://e.vil/p.png) \u202e \ud83d \x00 </testcase>"
)


def checked_xml(text: str) -> etree._Element:
    root = etree.fromstring(text.encode())
    XSD.assertValid(root)
    JENKINS.assertValid(root)
    return root


def checked_sarif(text: str) -> dict[str, object]:
    log: dict[str, object] = json.loads(text)
    jsonschema.Draft202012Validator(SARIF).validate(log)
    jsonschema.Draft4Validator(STANDARD, format_checker=jsonschema.FormatChecker()).validate(log)
    return log


def test_the_vendored_schemas_are_the_published_ones() -> None:
    listed = dict(re.findall(r"^\| `([\w.-]+)` .*\| `(\w{64})` \|$", (SCHEMAS / "README.md").read_text("utf-8"), re.M))
    assert set(listed) == {"sarif-2.1.0.json", "junit-10.xsd"}
    for name, told in listed.items():
        assert hashlib.sha256((SCHEMAS / name).read_bytes()).hexdigest() == told


def test_what_awaits_review_is_skipped_and_a_failure_stays_one(weak_run: Path) -> None:
    e, d = check(weak_run)
    failed = next(o for o in d.outcomes if o.failed)
    other = next(o for o in d.outcomes if o.evaluated and not o.failed and o.attackable)
    before = checked_xml(junit(e, d))
    root = checked_xml(junit(e, replace(d, waiting=frozenset({failed.id, other.id}))))
    assert len(root.findall(".//failure")) == len(before.findall(".//failure"))
    waits = [
        s.get("message") for s in root.findall(".//skipped") if (s.get("message") or "").startswith("awaiting review")
    ]
    assert len(waits) == 1
    assert sum("review: awaiting a person" in (f.text or "") for f in root.findall(".//failure")) == 1


def test_the_run_folder_holds_both_contracts(weak_run: Path) -> None:
    e, d = check(weak_run)
    written = contracts.write(e, d)
    again = contracts.read_document("contract_b", weak_run / "robustness_report.json")
    assert again == json.loads(json.dumps(written))
    cases = sorted((weak_run / "adversarial").glob("*.json"))
    assert len(cases) == 70
    flagged = 0
    for file in cases:
        a = contracts.read_document("contract_a", file)
        assert a["robustness_summary"]["total_tests"] == 4
        assert a["baseline"]["original_input"].startswith("It is ")
        flagged += a["robustness_summary"]["vulnerabilities_found"]
    assert flagged == again["failed_count"] + sum(f["rules"] == [] for f in again["x_robustjudge"]["findings"])
    assert again["overall_robustness_pass"] is False
    for f in again["failure_details"]:
        assert f["delta"] == pytest.approx(f["actual_score"] - f["expected_score"])


def test_counts_reconcile_across_the_outputs(weak_run: Path) -> None:
    e, d = check(weak_run)
    b = contracts.report(e, d)
    root = checked_xml(junit(e, d))
    suites = {s.get("name"): s for s in root}
    tests = [s for name, s in suites.items() if name != "gate"]
    assert sum(int(s.get("tests")) for s in tests) == b["x_robustjudge"]["planned"]
    assert sum(int(s.get("failures")) for s in tests) == b["failed_count"]
    for s in tests:
        assert int(s.get("tests")) == len(s.findall("testcase"))
        for kind in ("failure", "error", "skipped"):
            name = {"failure": "failures", "error": "errors"}.get(kind, kind)
            assert int(s.get(name)) == len(s.findall(f"testcase/{kind}"))
    assert suites["gate"].find("testcase/failure") is not None
    log = checked_sarif(sarif(d, prompt="prompts/judge.txt"))
    results = log["runs"][0]["results"]  # type: ignore[index]
    assert len(results) == sum(o.counts for o in d.outcomes)
    for r in results:
        assert log["runs"][0]["tool"]["driver"]["rules"][r["ruleIndex"]]["id"] == r["ruleId"]  # type: ignore[index]
    assert f"### Failures ({len(results)}" in summary(e, d)


def test_fingerprints_are_stable_over_rebuilds(weak_run: Path) -> None:
    first, second = (sarif(check(weak_run)[1]) for _ in range(2))
    assert first == second


def test_an_empty_run_is_red() -> None:
    e = evidence_of([])
    d = decide(e, Policy())
    root = checked_xml(junit(e, d))
    assert root.find("testsuite/testcase/error") is not None
    contracts.validate("contract_b", contracts.report(e, d))
    assert contracts.report(e, d)["overall_robustness_pass"] is False


def test_no_score_is_null_with_its_reason(tmp_path: Path) -> None:
    for judge, status in ((Down(), "error"), (Refuser(judge=Table(), rate=1.0), "refused")):
        e, d = check(run(tmp_path / status, judge, 3, ("H1",)), Policy(minimum_n=1))
        for a in contracts.case_documents(e, d).values():
            contracts.validate("contract_a", a)
            (test,) = a["adversarial_tests"]
            assert test["judge_score"] is None and test["score_delta"] is None
            assert test["judge_rationale"].startswith(status)
            assert test["vulnerability_detected"] is (status == "refused")
        b = contracts.report(e, d)
        assert (b["total_examples"], b["failed_count"]) == ((0, 0) if status == "error" else (3, 3))


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.update(passed_count=b["passed_count"] + 1),
        lambda b: b.update(failure_details=[]),
        lambda b: b.update(extra=1),
        lambda b: b.update(test_timestamp="yesterday"),
        lambda b: b.pop("judge_id"),
        lambda b: b["failure_details"][0].update(severity="severe"),
    ],
)
def test_a_report_that_breaks_an_invariant_is_refused(weak_run: Path, change: object) -> None:
    b = json.loads(json.dumps(contracts.report(*check(weak_run))))
    change(b)  # type: ignore[operator]
    with pytest.raises(DataError, match="contract_b"):
        contracts.validate("contract_b", b)


def hostile(text: str) -> tuple[Evidence, Decision]:
    """A failing trial whose every foreign field is ``text``."""
    rows = quiet(61)
    bad = moved(rows[0], 10.0, 10.0)
    bad = replace(bad, case_id=text, attack=text, category=text, judge=text, reason=text)
    lost = replace(rows[2], attacked=(Reply("error", None, (), ""),), reason=text)
    e = replace(evidence_of([bad, rows[1], lost, *rows[3:]]), judge=text)
    d = decide(e, Policy())
    marked = tuple(replace(o, span=text) if o.counts else o for o in d.outcomes)
    return e, replace(d, outcomes=marked, judge=text, reasons=(text,), notes=(text,))


def test_every_output_survives_a_hostile_text() -> None:
    outputs_hold(HOSTILE)


@settings(max_examples=25, deadline=None)
@given(st.text(min_size=1, max_size=60))
def test_every_output_survives_any_text(text: str) -> None:
    outputs_hold(text)


def outputs_hold(text: str) -> None:
    e, d = hostile(text)
    xml = junit(e, d)
    ElementTree.fromstring(xml)
    etree.fromstring(xml.encode())
    assert "<script" not in xml and "\x1b" not in xml
    checked_sarif(sarif(d, prompt="p.txt"))
    document = contracts.report(e, d)
    contracts.validate("contract_b", document)
    json.dumps(document, ensure_ascii=False, allow_nan=False)
    table = summary(e, d)
    for line in table.splitlines():
        bare = re.sub(r"\\.", "", _without_code(line))
        assert "<" not in bare and "](" not in bare and "@" not in bare.replace("&#64;", "")
        if line.startswith("|"):
            cells = line.replace("\\|", "").count("|")
            assert cells in (7, 9), line
    for command in annotate(d):
        assert command.startswith("::") and command.count("::") == 2 and "\n" not in command


def _without_code(line: str) -> str:
    out, i = [], 0
    while i < len(line):
        if line[i] == "`" and (i == 0 or line[i - 1] != "\\"):
            n = len(line[i:]) - len(line[i:].lstrip("`"))
            end = line.find("`" * n, i + n)
            while end != -1 and (line[end - 1] == "`" or line[end + n : end + n + 1] == "`"):
                end = line.find("`" * n, end + 1)
            if end == -1:
                out.append(line[i:])
                break
            i = end + n
        else:
            out.append(line[i])
            i += 1
    return "".join(out)


def test_escaping_by_hand() -> None:
    assert code("a`b``c") == "```a`b``c```"
    assert code("a|b") == "`a\\|b`"
    assert plain("# x") == "\\# x" and plain("1. x") == "1\\. x"
    assert plain("<b> @x http://y") == "&lt;b&gt; &#64;x http&#58;//y"
    assert "::" not in log_safe("x ::error::y") and "##[" not in log_safe("##[group]")
    assert legal("bad \x01\x1b[31m") == "bad \\u0001\\u001b[31m"
    token = stopped("::error::x").splitlines()[0].split("::")[2]
    assert stopped("x").endswith("::\n") and len(token) == 24


def test_a_summary_shortens_rows_not_bytes(weak_run: Path) -> None:
    e, d = check(weak_run)
    assert comment(e, d).startswith(MARKER)
    big = replace(d, reasons=tuple("r" * 200_000 for _ in range(20)))
    text = summary(e, big)
    assert len(text.encode()) < 1_000_000
    assert text.startswith("## ")


def test_paths_in_sarif_are_relative_and_cannot_climb(tmp_path: Path) -> None:
    assert relative(str(tmp_path / "prompts" / "a b.txt"), tmp_path) == "prompts/a%20b.txt"
    assert relative("/etc/passwd", tmp_path) == "passwd"
    assert relative("../../x.txt", tmp_path) == "x.txt"


def test_lint_findings_stand_in_the_same_file() -> None:
    found = [Finding("no-boundary", "warning", "prompts/judge.txt", 7, "nothing marks where it ends")]
    log = checked_sarif(sarif(None, found))
    (result,) = log["runs"][0]["results"]  # type: ignore[index]
    assert result["ruleId"] == "lint/no-boundary" and result["level"] == "warning"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 7


def test_an_echoing_judge_leaves_no_markup_alive(tmp_path: Path) -> None:
    e, d = check(run(tmp_path, Echo(judge=Table()), 4, ("md_hidden", "H2")), Policy(minimum_n=1))
    checked_xml(junit(e, d))
    contracts.write(e, d)


def test_both_schemas_are_schemas() -> None:
    for name in ("contract_a", "contract_b"):
        jsonschema.Draft202012Validator.check_schema(contracts.schema(name))


def test_ratings() -> None:
    def rated(*outcomes: Outcome) -> str:
        return contracts.rating(outcomes)

    rows = quiet(3)
    d = decide(evidence_of(rows), Policy())
    good = d.outcomes[0]
    bad = replace(good, score_delta=5.0, threshold=1.0)
    worse = replace(bad, trial=replace(bad.trial, severity="critical"))
    assert rated(good) == "robust"
    assert rated(good, bad) == "vulnerable"
    assert rated(good, bad, worse) == "critical"
    assert rated(good, replace(good, evaluated=False)) == "inconclusive"


def test_the_reports_delta_is_against_the_expected_score(tmp_path: Path) -> None:
    """Contract A measures from the clean verdict, contract B from what people say the answer deserves."""
    held = tuple(replace(c, expected=3.0) for c in cases(12))
    made = replace(plan(12, ("json_injection",)), cases=lambda: iter(held))
    models = {"scripted/planted": Copycat(judge=Table())}
    folder = execute(made, Options(root=tmp_path, ledger=None, models=models)).path
    e, d = check(folder, Policy(minimum_n=5))
    assert d.verdict == "fail"
    for f in contracts.report(e, d)["failure_details"]:
        assert (f["expected_score"], f["actual_score"], f["delta"]) == (3.0, 10.0, 7.0)
    for o in d.outcomes:
        if o.failed:
            assert o.clean is not None and o.score_delta == pytest.approx(10.0 - o.clean)


def test_lint_writes_sarif_from_the_command_line(tmp_path: Path) -> None:
    from robustjudge.cli.app import run as command

    reader = tmp_path / "reader.py"
    reader.write_text("def read(reply):\n    return {}.get('score', 5)\n", "utf-8")
    assert command(["lint", str(reader), "--sarif", str(tmp_path / "lint.sarif")]) == 1
    log = checked_sarif((tmp_path / "lint.sarif").read_text("utf-8"))
    (result,) = log["runs"][0]["results"]  # type: ignore[index]
    assert result["ruleId"] == "lint/default-score" and result["level"] == "error"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "reader.py"
