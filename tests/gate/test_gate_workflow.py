"""The shipped workflow on a repository made by ``robustjudge init``: red on a weak prompt, green on a hardened one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from fake_api import Box

from robustjudge.gate.contracts import read_document

BIN = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parents[2]


def workflow(path: Path) -> list[dict[str, object]]:
    data = yaml.safe_load(path.read_text("utf-8"))
    (job,) = data["jobs"].values()
    steps: list[dict[str, object]] = job["steps"]
    return steps


def run_steps(repo: Path, box: Box) -> dict[str, int]:
    """Every ``run:`` of the workflow in order, as the runner would: a failed step skips the rest but ``if: always()``."""
    env = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "ROBUSTJUDGE_"))},
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(repo / "step.md"),
        "GITHUB_API_URL": box.url,
        "GITHUB_REPOSITORY": "someone/project",
        "GITHUB_REF": "refs/pull/3/merge",
        "GITHUB_TOKEN": "local",
    }
    codes: dict[str, int] = {}
    red = False
    for step in workflow(repo / ".github/workflows/judge-gate.yml"):
        if "run" not in step or (red and step.get("if") != "always()"):
            continue
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", str(step["run"])],
            check=False,
            cwd=repo,
            env=env,
            capture_output=True,
            text=True,
            timeout=240,
        )
        codes[str(step["name"])] = done.returncode
        red = red or done.returncode != 0
        print(step["name"], done.returncode, done.stdout[-800:], done.stderr[-800:])
    return codes


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A fresh clone of a project made by ``init``, with 64 cases and a planted judge that obeys what is not fenced."""
    home = tmp_path / "origin"
    subprocess.run([BIN / "robustjudge", "init", str(home)], check=True, capture_output=True)
    rows = [
        {
            "id": f"c{i}",
            "task": f"Say what {i} plus {i} is.",
            "response": f"It is {2 * i + 1}.",
            "reference": f"It is {2 * i}.",
        }
        for i in range(70)
    ]
    (home / "cases.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    policy = (home / "policy.yaml").read_text("utf-8")
    assert "minimum_n: 60" in policy
    (home / "policy.yaml").write_text(policy.replace("[injection]", "[injection, format_hacking]"), "utf-8")
    config = (home / "robustjudge.yaml").read_text("utf-8")
    config = config.replace("scripted/gameable", "scripted/fenced?judge=table").replace("fence: nonce", "fence: plain")
    config = re.sub(r"attacks: \[.*\]", "attacks: [H1, H4]", config)
    (home / "robustjudge.yaml").write_text(config, "utf-8")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run([*git, *args], cwd=home, check=True)
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(home), str(clone)], check=True)
    return clone


def test_red_on_a_weak_prompt_and_green_on_a_hardened_one(repository: Path) -> None:
    box = Box()
    try:
        red = run_steps(repository, box)
        assert red["Install"] == red["Attack the judge"] == red["Tell the pull request"] == 0
        assert red["Decide"] == 1
        report = read_document("contract_b", repository / "runs/latest/robustness_report.json")
        assert report["overall_robustness_pass"] is False and report["failed_count"] > 0
        for file in (repository / "runs/latest/adversarial").iterdir():
            read_document("contract_a", file)
        config = repository / "robustjudge.yaml"
        config.write_text(config.read_text("utf-8").replace("fence: plain", "fence: nonce"), "utf-8")
        green = run_steps(repository, box)
        assert set(green.values()) == {0}
        after = read_document("contract_b", repository / "runs/latest/robustness_report.json")
        assert after["overall_robustness_pass"] is True
        assert after["prompt_version"] != report["prompt_version"]
    finally:
        box.server.shutdown()
        box.server.server_close()
    assert [m for m, *_ in box.got] == ["GET", "POST", "GET", "PATCH"]
    assert "❌" in box.got[1][2]["body"] and "✅" in box.got[3][2]["body"]
    summary = (repository / "step.md").read_text("utf-8")
    assert summary.index("gate: fail") < summary.index("gate: pass")


def test_every_shipped_pipeline_is_yaml_that_calls_us() -> None:
    home = files("robustjudge.cli").joinpath("scaffold/workflows")
    texts = {f.name: f.read_text("utf-8") for f in home.iterdir()}
    assert {"judge-gate.yml", "judge-nightly.yml"} <= set(texts)
    gitlab = files("robustjudge.gate").joinpath("workflows/gitlab-ci.yml").read_text("utf-8")
    for name, text in {**texts, "gitlab": gitlab}.items():
        data = yaml.safe_load(text)
        assert data and "robustjudge gate runs --junit --sarif" in text, name
        assert "${{ github.event" not in text, name  # text of a pull request never enters a shell line


def test_the_action_passes_inputs_by_environment_only() -> None:
    action = ROOT / "action.yml"
    if not action.is_file():
        pytest.skip("action.yml stands in the repository, not in the installed package")
    data = yaml.safe_load(action.read_text("utf-8"))
    for step in data["runs"]["steps"]:
        assert "${{" not in step["run"], step["name"]
        assert shutil.which("bash")
