"""A fleet: all its judges in one command, alerts once and on recovery, only what changed, and a page that nothing acts on."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gate"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from cli_help import Cli
from fake_api import Box

from page_help import HOSTILE, NASTY, live
from robustjudge.errors import ConfigError
from robustjudge.fleet import page
from robustjudge.fleet.file import Fleet, Member, place, read_fleet
from robustjudge.fleet.night import Stand, expiring, outcome
from robustjudge.tracking.alerts import Standing

CASES = "".join(
    json.dumps({"id": f"c{i}", "task": f"Say what {i} plus {i} is.", "response": f"It is {2 * i + 1}."}) + "\n"
    for i in range(70)
)
CONFIG = """\
cases: [{source: ../cases.jsonl}]
judges: {%s: {model: "scripted/fenced?judge=table", fence: %s}}
attacks: [H1]
controls: [identity, neutral/H1]
repeats: 2
policy: ../policy.yaml
"""
FLEET = """\
judges:
  - {name: Help desk, config: desk/robustjudge.yaml}
  - {name: safety, config: safety/robustjudge.yaml}
alerts: ["${TEAM_HOOK}"]
"""


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    return Cli(tmp_path, capsys)


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Iterator[Box]:
    made = Box()
    monkeypatch.setenv("TEAM_HOOK", f"{made.url}/hook")
    yield made
    made.server.shutdown()
    made.server.server_close()


def fleet_of(cli: Cli, desk: str = "plain", safety: str = "nonce") -> None:
    cli.write("cases.jsonl", CASES)
    cli.write("policy.yaml", "rule: strict\n")
    cli.write("desk/robustjudge.yaml", CONFIG % ("desk", desk))
    cli.write("safety/robustjudge.yaml", CONFIG % ("safe", safety))
    cli.write("fleet.yaml", FLEET)


def test_a_fleet_over_five_nights(cli: Cli, box: Box) -> None:
    """Red, red again (no call, told nothing), a configuration that breaks, mended and hardened, and nothing new."""
    fleet_of(cli)
    said = cli("run", "--fleet", "fleet.yaml")
    assert said.code == 1, said.err
    assert "Help desk: desk: fail" in said.out and "safety: safe: pass" in said.out
    assert [(b["event"], b["judge_id"]) for _, _, b, _ in box.got] == [("failed", "desk")]
    html = (cli.folder / "runs/fleet.html").read_text("utf-8")
    assert "1 of 2 pass" in html and live(html) == ["style"] and "http" not in html.replace("http-equiv", "")
    assert (cli.folder / "runs/help-desk/latest/robustness_report.json").is_file()

    again = cli("run", "--fleet", "fleet.yaml", "--changed-only")
    assert again.code == 1 and again.err.count("unchanged since") == 2 and len(box.got) == 1
    assert len(list((cli.folder / "runs/help-desk").glob("2*"))) == 1
    assert "nothing changed" in (cli.folder / "runs/fleet.html").read_text("utf-8")

    cli.write("desk/robustjudge.yaml", "judgs: {}\n")
    broken = cli("run", "--fleet", "fleet.yaml", "--changed-only")
    assert broken.code == 2 and "did you mean 'judges'" in broken.out and "safety: safe: pass" in broken.out
    assert [b["event"] for _, _, b, _ in box.got] == ["failed", "failed"]

    fleet_of(cli, desk="nonce")
    mended = cli("run", "--fleet", "fleet.yaml", "--changed-only")
    assert mended.code == 0 and "desk: prompt changed since" in mended.err and "safe: unchanged" in mended.err
    assert sorted((b["event"], b["verdict"]) for _, _, b, _ in box.got[2:]) == [
        ("recovered", "can be decided on again"),
        ("recovered", "pass"),
    ]
    calm = cli("run", "--fleet", "fleet.yaml", "--changed-only")
    assert calm.code == 0 and len(box.got) == 4
    held = json.loads((cli.folder / "runs/fleet.json").read_text("utf-8"))
    assert [[w for _, w in j["trend"]] for j in held["judges"]] == [["pass", "fail"], ["pass"]]


def test_only_what_changed_is_run(cli: Cli) -> None:
    fleet_of(cli)
    cli.write(
        "two.yaml", (CONFIG % ("one", "nonce")).replace("../", "").replace("}}", "}, two: {model: scripted/gameable}}")
    )
    assert cli("run", "-c", "two.yaml").code == 0

    def told(said: object) -> list[str]:
        return [x.partition(" since")[0] for x in said.err.splitlines() if "changed" in x or "never" in x]  # type: ignore[attr-defined]

    same = cli("run", "-c", "two.yaml", "--changed-only")
    assert told(same) == ["one: unchanged", "two: unchanged"] and same.code == 0
    assert len(list((cli.folder / "runs").glob("2*"))) == 1
    text = (cli.folder / "two.yaml").read_text("utf-8")
    cli.write("two.yaml", text.replace("scripted/gameable", "scripted/table"))
    assert told(cli("run", "-c", "two.yaml", "--changed-only")) == ["one: unchanged", "two: model changed"]
    cli.write("two.yaml", text.replace("fence: nonce", "fence: nonce, scale: {min: 1, max: 5}"))
    assert told(cli("run", "-c", "two.yaml", "--changed-only"))[0] == "one: prompt changed"
    cli.write("two.yaml", text)
    cli.write("cases.jsonl", CASES.replace("1 plus 1", "one plus one"))
    assert told(cli("run", "-c", "two.yaml", "--changed-only", "--dry-run"))[1] == "two: data changed"
    cli.write("cases.jsonl", "".join(reversed(CASES.splitlines(keepends=True))))
    cli.write("two.yaml", text.replace("[H1]", "[H1, H4]"))
    assert told(cli("run", "-c", "two.yaml", "--changed-only", "--dry-run"))[1] == "two: attack changed"


def test_a_night_that_was_killed_goes_on_with_the_run_it_left(cli: Cli, box: Box) -> None:
    fleet_of(cli)
    cli("run", "--fleet", "fleet.yaml")
    (run,) = (cli.folder / "runs/safety").glob("2*")
    manifest = run / "manifest.json"
    manifest.write_text(manifest.read_text("utf-8").replace('"state": "complete"', '"state": "running"'), "utf-8")
    assert cli("run", "--fleet", "fleet.yaml", "--changed-only").code == 1
    assert list((cli.folder / "runs/safety").glob("2*")) == [run]
    assert json.loads(manifest.read_text("utf-8"))["state"] == "complete"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("judges: []", "judges"),
        ("judgs: []", "did you mean 'judges'"),
        ("judges: [{name: a, polcy: x}]", "did you mean 'policy'"),
        ("judges: [{name: A b}, {name: a-B}]", "lead to one folder"),
        ("judges: [{name: a}]\nalerts: ['nonsense']", "alert"),
        ("judges: [{name: a}]\nalerts: ['${NOT_SET_ANYWHERE}']", "NOT_SET_ANYWHERE"),
        ("[", "not valid YAML"),
    ],
)
def test_bad_fleet_files(cli: Cli, text: str, says: str) -> None:
    cli.write("fleet.yaml", text)
    said = cli("run", "--fleet", "fleet.yaml")
    assert said.code == 2 and says in said.err
    assert not (cli.folder / "runs").exists()


def test_wrong_options_are_told(cli: Cli) -> None:
    fleet_of(cli)
    assert cli("run", "--fleet", "fleet.yaml", "--judge", "x/y").code == 2
    assert cli("run", "--changed-only", "--resume", "runs").code == 2
    cli.write("fleet.yaml", "judges: [{name: a, config: desk/robustjudge.yaml, judge: dask}]")
    said = cli("run", "--fleet", "fleet.yaml")
    assert said.code == 2 and "desk" in said.out


def test_what_is_about_to_expire_is_told(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(
        "- {owner: ann, approver: bob, reason: known, created: 2026-01-01, expires: 2026-02-01,\n"
        "   scope: {judge: desk, prompt_hash: abc, category: injection}}\n",
        "utf-8",
    )
    fleet = Fleet(judges=[Member(name="a", waivers="w.yaml")])
    assert expiring(fleet, tmp_path, date(2026, 1, 17)) == {}
    (notice,) = expiring(fleet, tmp_path, date(2026, 1, 18)).values()
    assert notice.judge == "desk" and "ends on 2026-02-01" in notice.reasons[0]
    (late,) = expiring(fleet, tmp_path, date(2026, 3, 1)).values()
    assert "ended on" in late.reasons[0]
    (tmp_path / "w.yaml").write_text("{", "utf-8")
    assert "w.yaml" in next(iter(expiring(fleet, tmp_path).values())).reasons[0]


def test_nothing_acts_on_the_status_page() -> None:
    told = Standing(HOSTILE, HOSTILE, HOSTILE, HOSTILE, False, HOSTILE, (HOSTILE,) * 3, 1, 2, HOSTILE)
    rows = [
        Stand(HOSTILE, told, 1, HOSTILE, True, "", ((HOSTILE,) * 3,), (HOSTILE,), ((HOSTILE, HOSTILE),) * 3),
        Stand(HOSTILE, replace(told, passed=True), 2, fault=HOSTILE),
    ]
    html = page.page(rows, [HOSTILE], [HOSTILE], HOSTILE)
    assert live(html) == ["style"]
    assert not any(n in html for n in NASTY[:5]) and "\x1b" not in html and "\u202e" not in html


def test_codes_and_places(tmp_path: Path) -> None:
    stand = Stand("m", Standing("k", "j", "", "", True, "pass"), 0)
    assert outcome((stand, replace(stand, code=3), replace(stand, code=4))) == 4
    assert outcome((stand, replace(stand, code=1), replace(stand, code=2))) == 2 and outcome((stand,)) == 0
    assert place("../../etc") == "etc" and place("…") == "judge"
    with pytest.raises(ConfigError):
        read_fleet(tmp_path / "none.yaml")
