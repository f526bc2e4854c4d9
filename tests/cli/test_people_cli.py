"""calibrate, profile, bias and label from the command line: exit codes, files, and words."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest

from robustjudge.cli.app import run

SUCCESS, FAILURE = "SUCCESS", "FAILURE"
COMMON = ["--label", SUCCESS, "--label", FAILURE, "--rubric", "The sum is right.", "--design", "srs"]


def labels(path: Path, n: int = 300, raters: int = 2, judge: bool = True, tpr: float = 0.92, fpr: float = 0.08) -> Path:
    rng = random.Random(4)
    with path.open("w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["item_id", "rater_id", "rater_kind", "label", "score"])
        for i in range(n):
            truth = rng.random() < 0.5
            for r in range(raters):
                out.writerow([f"i{i}", f"h{r}", "human", SUCCESS if truth ^ (rng.random() < 0.03) else FAILURE, ""])
            if judge:
                said = rng.random() < (tpr if truth else fpr)
                score = 0.8 if said else 0.2
                out.writerow([f"i{i}", "judge:toy", "judge", SUCCESS if said else FAILURE, score])
    return path


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    assert run(["calibrate", str(labels(tmp_path / "l.csv")), *COMMON, "-o", str(tmp_path / "p")]) == 0
    return tmp_path / "p" / "profile.json"


def test_calibrate_writes_package_and_page(profile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["calibrate", str(tmp_path / "l.csv"), *COMMON, "-o", str(tmp_path / "p")]) == 0
    told = capsys.readouterr().out
    assert "certified" in told and "human kappa" in told
    body = json.loads(profile.read_text())
    assert len(body["anchors"]["sha256"]) == 64 and body["anchors"]["n"] > 250
    assert body["calibration_map"]["map"]["kind"] == "isotonic" and body["calibration_map"]["n"] > 250
    html = (tmp_path / "p" / "page.html").read_text()
    assert "Do probabilities come true?" in html and "Reliability" in html
    assert run(["profile", "verify", str(profile), "--data", str(tmp_path / "l.csv")]) == 0
    assert run(["profile", "show", str(profile), "--page", str(tmp_path / "again.html")]) == 0
    assert (tmp_path / "again.html").read_text() == html


def test_tampering_is_found(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile.write_text(profile.read_text().replace('"certified"', '"refused"'))
    assert run(["profile", "verify", str(profile)]) == 1
    assert "fail: content_address" in capsys.readouterr().out


def test_refusals_have_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = labels(tmp_path / "one.csv", raters=1)
    assert run(["calibrate", str(one), *COMMON, "-o", str(tmp_path / "p")]) == 1
    assert "needs two raters" in capsys.readouterr().out
    few = labels(tmp_path / "few.csv", n=40)
    assert run(["calibrate", str(few), *COMMON, "-o", str(tmp_path / "p")]) == 3
    assert "more positives" in capsys.readouterr().out
    assert run(["calibrate", str(few), "--rubric", "x"]) == 2


def test_weak_agreement_shows_where_people_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = labels(tmp_path / "l.csv", n=60)
    rows = path.read_text().splitlines()
    rng = random.Random(1)
    other = {SUCCESS: FAILURE, FAILURE: SUCCESS}
    for i, row in enumerate(rows[1:], 1):
        cells = row.split(",")
        if cells[1] == "h1" and rng.random() < 0.5:
            cells[3] = other[cells[3]]
            rows[i] = ",".join(cells)
    rows = [f"{row},{'stratum' if i == 0 else 'red' if 'i1' in row else 'blue'}" for i, row in enumerate(rows)]
    path.write_text("\n".join(rows) + "\n")
    assert run(["calibrate", str(path), *COMMON, "-o", str(tmp_path / "p")]) == 1
    told = capsys.readouterr().out
    assert (
        "fix the rubric first" in told and "FAILURE / SUCCESS (" in told and "in red:" in told and "differ on i" in told
    )
    split = [json.loads(line) for line in (tmp_path / "p" / "disagreements.jsonl").read_text().splitlines()]
    assert len(split) > 15 and set(split[0]) == {"item", "labels", "stratum"}
    assert "Raters differ on" in (tmp_path / "p" / "page.html").read_text()
    assert run(["profile", "verify", str(tmp_path / "p" / "profile.json")]) == 0


def test_wide_tables_need_their_orientation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wide = tmp_path / "w.csv"
    wide.write_text(
        "item,ann,bob\n" + "".join(f"i{i},{s},{s}\n" for i, s in enumerate([SUCCESS, FAILURE, FAILURE] * 9))
    )
    assert run(["calibrate", str(wide), *COMMON]) == 2
    assert "orientation" in capsys.readouterr().err
    assert run(["calibrate", str(wide), *COMMON, "--raters-in", "columns", "-o", str(tmp_path / "p")]) == 1
    assert "no judge rows" in capsys.readouterr().out
    body = json.loads((tmp_path / "p" / "profile.json").read_text())
    assert body["humans"]["raters"] == 2 and body["humans"]["n_items"] == 27
    assert run(["calibrate", str(wide), *COMMON, "--raters-in", "sideways"]) == 2


def test_diff_reconcile_and_correct(profile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worse = labels(tmp_path / "w.csv", tpr=0.8, fpr=0.1)
    assert run(["calibrate", str(worse), *COMMON, "-o", str(tmp_path / "q")]) in (0, 3)
    other = str(tmp_path / "q" / "profile.json")
    assert run(["profile", "diff", str(profile), other]) == 0
    assert "TPR difference: -0." in capsys.readouterr().out
    assert run(["profile", "reconcile", str(profile), "120/400", other, "160/400"]) == 0
    assert "difference:" in capsys.readouterr().out
    assert run(["profile", "reconcile", str(profile), "120/40", other, "1/4"]) == 2
    assert run(["profile", "correct", "120/400", "--profile", str(profile)]) == 3  # transfer untested: refused
    assert run(["profile", "correct", "120/400", "--profile", str(profile), "--untested"]) == 0
    capsys.readouterr()
    more = ["--share", "0.2", "--attack-rate", "45/50", "--untested"]
    assert run(["profile", "correct", "120/400", "--profile", str(profile), *more]) == 0
    assert "the true rate lies in [" in capsys.readouterr().out


def items(path: Path, n: int) -> Path:
    rows = [{"id": f"i{i}", "task": f"{i} + 1?", "response": f"{i + 1}"} for i in range(n)]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def test_a_judge_is_run_on_the_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    people = labels(tmp_path / "l.csv", n=60, judge=False)
    args = ["calibrate", str(people), *COMMON, "--items", str(items(tmp_path / "i.jsonl", 60)), "--expect"]
    assert run([*args, "--judge", "scripted/noisy?seed=3"]) in (1, 3)
    body = json.loads((tmp_path / "profile" / "profile.json").read_text())
    assert body["judge_id"] == "scripted/noisy?seed=3" and body["fingerprint"]["template"] == "success_failure"
    c = body["confusion"]
    assert c["tp"] + c["fp"] + c["fn"] + c["tn"] > 50 and body["calibration_map"]["n"] > 50
    assert run([*args[:-3], "--judge", "scripted/noisy"]) == 2  # no items
    capsys.readouterr()
    alone = labels(tmp_path / "one.csv", n=60, raters=1, judge=False)
    assert run(["calibrate", str(alone), *args[2:], "--judge", "scripted/down"]) == 1  # refused before any call
    assert "needs two raters" in capsys.readouterr().out


def test_drift_tells_who_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = labels(tmp_path / "old.csv", n=200)
    two = ["--label", SUCCESS, "--label", FAILURE]
    history = ["--history", str(tmp_path / "h.jsonl")]
    assert run(["profile", "drift", str(old), str(old), *two, *history]) == 0
    assert "no evidence of change" in capsys.readouterr().out
    text = old.read_text().splitlines()
    moved = [row.replace(f"judge,{SUCCESS}", f"judge,{FAILURE}") if i % 2 else row for i, row in enumerate(text)]
    (tmp_path / "new.csv").write_text("\n".join(moved) + "\n")
    assert run(["profile", "drift", str(old), str(tmp_path / "new.csv"), *two, *history]) == 1
    told = capsys.readouterr().out
    assert "the judge moved" in told and "control chart over 2 runs" in told and "kappa old-new" in told
    live = ["--live-old", "100/400", "--live-new", "180/400"]
    assert run(["profile", "drift", str(old), str(old), *two, *live]) == 0
    assert "the system or the population moved" in capsys.readouterr().out


def test_label_plan_draw_and_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["label", "--plan", "--prevalence", "0.05", "--budget", "300"]) == 0
    told = capsys.readouterr().out
    assert "hold about 15 positives" in told and "judge positives" in told
    monkeypatch.setattr("robustjudge.cli.labels._serve", lambda study, port: None)
    verdicts = labels(tmp_path / "v.csv", n=40, raters=0)
    args = ["label", str(items(tmp_path / "i.jsonl", 40)), "--raters", "ann,bob", *COMMON[:-2]]
    sizes = ["--judged", str(verdicts), "--size", f"{SUCCESS}=8", "--size", f"{FAILURE}=2"]
    assert run([*args, *sizes]) == 0
    from robustjudge.labelling import Store

    store = Store(tmp_path / "labels.sqlite")
    while (place := store.next("ann")) is not None:
        store.put("ann", place.position, SUCCESS)
    assert run(["label", "--export", "out.csv"]) == 0
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert {r["stratum"] for r in rows} == {SUCCESS, FAILURE}
    assert all(0 < float(r["inclusion_prob"]) < 1 for r in rows)
    capsys.readouterr()
    assert run(["label", "--suggest", "--judged", str(verdicts), "--label", SUCCESS, "-n", "3"]) == 0
    assert capsys.readouterr().out.count("judge says") == 3
    assert run(["label", "nothing.jsonl", "--raters", "ann", "--store", "other.sqlite", *COMMON[:-2]]) == 2


def test_bias_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], profile: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["bias", "--list"]) == 0
    assert "twin:" in capsys.readouterr().out
    args = ["bias", "--judge", "scripted/markdown_lover", "--cases", "builtin/summarization", "--limit", "12"]
    args += ["--probe", "markdown", "--minimum", "4", "--protocol", "pointwise"]
    assert run([*args, "--dry-run"]) == 0 and not (tmp_path / "runs").exists()
    assert run([*args, "--profile", str(profile)]) == 1
    told = capsys.readouterr().out
    assert "biased:" in told and "findings added" in told
    (run_folder,) = (tmp_path / "runs").glob("*bias*")
    body = json.loads((run_folder / "bias.json").read_text())
    assert body["schema"] == "robustjudge.bias/1" and body["findings"]
    assert "What is ruled out" in (run_folder / "bias.html").read_text()
    assert run(["profile", "verify", str(profile)]) == 0
    assert run([*args[:-2], "--probe", "paddin"]) == 2


def test_judge_calls_may_stop_when_the_rates_are_narrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    args = ["run", "--judge", "scripted/gameable", "--cases", "builtin/summarization", "--limit", "12"]
    args += ["--attack", "H6"]
    assert run([*args, "--control", "identity"]) in (0, 4)
    capsys.readouterr()
    assert run(["profile", "enough", "runs/latest", "--half-width", "0.01"]) == 3
    told = capsys.readouterr().out
    assert "H6: " in told and "go on for +-0.01" in told and "valid at every look" in told and "identity" not in told
    assert run(["profile", "enough", "runs/latest", "--half-width", "0.6"]) == 0
    assert "may stop" in capsys.readouterr().out
    assert run(["profile", "enough", "nowhere"]) == 2


def test_self_preference_says_whose_answers_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cases = [
        {"id": f"c{i}", "task": f"Why {i}?", "response": f"Because of {i}. So it is.", "reference": f"It is {i}, for a reason.",
         "generator": "openai/gpt-4o", "reference_generator": "anthropic/claude-3-haiku", "human_winner": "reference"}
        for i in range(6)
    ]  # fmt: skip
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, cases)))
    judges = {
        n: f'{n}: {{model: "scripted/noisy", template: robustjudge, family: {f}}}'
        for n, f in (("a", "gpt"), ("b", "openai"))
    }
    (tmp_path / "j.yaml").write_text("judges:\n  " + "\n  ".join(judges.values()) + "\ncases: [{source: c.jsonl}]\n")
    assert run(["bias", "-c", "j.yaml", "--probe", "padding", "--protocol", "pairwise"]) == 3
    told = capsys.readouterr()
    assert "self-preference of b is not measured: its family is openai, the answers are by claude, gpt" in told.err
    assert "self-preference of a" not in told.err and "Self preference (pairwise)" in told.out


CONFIG = """
judges:
  mine: {model: "scripted/noisy?seed=5", template: success_failure}
"""


def test_a_configured_judge_is_calibrated_verified_and_judges_anchors_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.yaml").write_text(CONFIG)
    people, texts = labels(tmp_path / "l.csv", n=60, judge=False), str(items(tmp_path / "i.jsonl", 60))
    assert run(["calibrate", str(people), *COMMON, "--items", texts, "-c", "r.yaml"]) in (1, 3)
    assert run(["profile", "verify", "profile/profile.json", "-c", "r.yaml"]) == 0
    (tmp_path / "s.yaml").write_text(CONFIG.replace("seed=5", "seed=6"))
    assert run(["profile", "verify", "profile/profile.json", "-c", "s.yaml"]) == 1
    assert "changed:" in capsys.readouterr().out
    anchors = labels(tmp_path / "anchors.csv", n=60)
    args = ["profile", "drift", str(anchors), "--label", SUCCESS, "--label", FAILURE]
    assert run([*args, "-c", "r.yaml", "--items", texts, "--save", "now.csv"]) == 1
    told = capsys.readouterr().out
    assert ("the judge moved" in told and "flips beyond retest noise: +0" in told) or "-0" in told
    assert len(list(csv.DictReader((tmp_path / "now.csv").open()))) == 120  # judged twice
    assert run([*args, "now.csv"]) == run([*args, "now.csv"])
    assert run(args) == 2


def test_a_run_is_corrected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.yaml").write_text(
        CONFIG
        + "cases: [{source: builtin/knowledge, limit: 4}]\nprotocols: [pointwise]\nattacks: [H1]\ncontrols: [identity]\n"
    )
    assert run(["run", "-c", "r.yaml"]) == 0
    assert run(["profile", "correct", "runs", "--profile", str(profile)]) == 3
    assert run(["profile", "correct", "runs", "--profile", str(profile), "--untested"]) == 0


def test_probes_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(
        '[[probe]]\nname="apology"\ngroup="calm"\nplacement="append"\nclaim="an apology"\ntwin="a remark"\n'
        'edit=["I am sorry that this is not better."]\nneutral=["I am aware that this is the answer."]\n'
    )
    args = ["bias", "--judge", "scripted/noisy", "--cases", "builtin/knowledge", "--limit", "4", "--probes", "p.toml"]
    assert run([*args, "--probe", "apology", "--gate", "apology", "--protocol", "pointwise"]) == 3
    assert "Apology (pointwise)" in capsys.readouterr().out
