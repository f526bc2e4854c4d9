"""Audit a verdict reader: the common "first number in the reply" against a strict one, on recorded replies."""

import json
import re
from pathlib import Path

from robustjudge.scales.audit import read_cases

scale = {"min": 1, "max": 10}
cases = [
    {"id": "plain", "raw_reply": "Clear and right.\nVERDICT: 8", "expected": {"status": "ok", "value": 8}},
    {"id": "years", "raw_reply": "It cites 3 sources.\nVERDICT: 8", "expected": {"status": "ok", "value": 8}},
    {"id": "none", "raw_reply": "I looked at all 5 claims.", "expected": {"status": "unparsed", "value": None}},
    {"id": "cut", "raw_reply": "VERDICT: 1", "finish_reason": "length", "expected": {"status": "truncated"}},
]
file = Path("replies.jsonl")
file.write_text("".join(json.dumps({"scale": scale, **c}) + "\n" for c in cases), encoding="utf-8")


def first_number(case: dict) -> dict:
    found = re.search(r"\d+", case["raw_reply"])
    return {"status": "ok", "value": int(found[0])} if found else {"status": "unparsed", "value": None}


for name, reader in (("first number", first_number), ("strict", None)):
    audit = read_cases(file, reader)
    print(name, *audit.lines(), sep="\n  ")
