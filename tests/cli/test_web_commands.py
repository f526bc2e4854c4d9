"""``review`` and ``view`` as a user starts them: the link works, Ctrl-C ends, and wrong input is told."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_help import Cli

from page_help import hostile_run
from robustjudge.review import open_store
from robustjudge.variants import Variant, append_variants


@pytest.mark.parametrize("command", [("review", "runs/r", "--reviewer", "ann"), ("view", "runs")])
def test_the_printed_link_opens_the_page_and_ctrl_c_ends_it(cli: Cli, command: tuple[str, ...]) -> None:
    hostile_run(cli.folder / "runs" / "r")
    child = subprocess.Popen(
        [sys.executable, "-m", "robustjudge", *command],
        cwd=cli.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    link = None
    while link is None:
        line = child.stdout.readline()
        assert line, child.communicate()
        link = re.search(r"http://127\.0\.0\.1:(\d+)(/\S+)", line)
    assert command[0] == "view" or line.startswith("ann: ")
    page = http.client.HTTPConnection("127.0.0.1", int(link[1]), timeout=30)
    page.request("GET", link[2])
    answer = page.getresponse()
    answer.read()
    cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
    assert answer.status == 303 and answer.getheader("location") == "/"
    page.request("GET", "/", headers={"Cookie": cookie})
    text = page.getresponse().read().decode()
    assert ("2 of 2 wait" if command[0] == "review" else ">r</a>") in text
    page.request("GET", "/")
    assert page.getresponse().status == 403
    page.close()
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    assert child.returncode == 0 and errors == ""


def test_reviewers_get_a_link_each(cli: Cli) -> None:
    hostile_run(cli.folder / "runs" / "r")
    said = cli("review", "runs/r", "--reviewer", "ann", "--reviewer", "bob", "--once", "0")
    links = re.findall(r"(\w+): http://127\.0\.0\.1:\d+/\?token=(\S{43})", said.out)
    assert said.code == 0 and [n for n, _ in links] == ["ann", "bob"] and links[0][1] != links[1][1]
    assert cli("review", "runs/r", "--reviewer", "ann", "--reviewer", "ann", "--once", "0").code == 2


def test_the_trail_is_exported_and_generated_inputs_are_found(cli: Cli) -> None:
    run = hostile_run(cli.folder / "runs" / "r")
    v = Variant.of("c", "text", "format_hacking")
    append_variants(cli.folder / "review" / "a.jsonl", [v])
    store = open_store(cli.folder / "s.sqlite")
    store.decide(v.id, 0, "approve", "ann")
    store.close()
    said = cli("review", str(run), "--store", "s.sqlite", "--export", "out.jsonl")
    assert said.code == 0 and "3 items" in said.out
    lines = {x["id"]: x for x in map(json.loads, Path("out.jsonl").read_text("utf-8").splitlines())}
    assert lines[v.id]["decision"]["who"] == "ann" and lines[v.id]["kind"] == "generated"
    assert sum(x["decision"] is None for x in lines.values()) == 2


def test_wrong_input_is_told(cli: Cli) -> None:
    assert cli("review").code == 2 and cli("view").code == 2
    run = str(hostile_run(cli.folder / "runs" / "r"))
    for words in (
        ("review", "nowhere"),
        ("review", run, "--severity", "grave"),
        ("review", run, "--store", "mysql://h/x"),
        ("review", run, "--inputs", "none.jsonl"),
        ("review", run, "--policy", "none.yaml"),
        ("review", run, "--reviewer", " ", "--once", "0"),
        ("view", "nowhere"),
        ("view", "runs", "--port", "99999"),
    ):
        said = cli(*words)
        assert said.code == 2 and said.err, words
