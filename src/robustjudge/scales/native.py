"""Native verdict forms of four fine-tuned judges, from their public descriptions; each still reads strictly.

* ``judgelm``: the *first* line is two scores (first answer, second answer), an explanation follows.
* ``pandalm``: the *first* line is ``1``, ``2`` or ``Tie``, a reason and a reference follow.
* ``auto_j``: a critique that ends in "final decision is Response 1 / Response 2 / Tie", or in ``Rating: [[n]]``.
* ``prometheus``: a feedback that ends in ``[RESULT] x`` (a score, or A / B).
"""

from __future__ import annotations

import re
from dataclasses import replace

from robustjudge.scales.reader import Reading, read
from robustjudge.scales.scale import Scale

STYLES = ("judgelm", "pandalm", "auto_j", "prometheus")

_CHANNEL = ("refusal field set", "content filter", "thinking block never closes")

_DECISION = re.compile(
    r"final[ \t]{1,3}decision[ \t]{1,3}is[ \t]{0,3}:?[ \t]{0,3}(response[ \t]{1,3}([12])|tie)\b(?![ \t]{0,3}(?:or|/)\b)",
    re.IGNORECASE,
)


def native_scale(style: str, pairwise: bool) -> Scale:
    """The scale a native form is read on."""
    if style == "judgelm":
        return Scale(low=1, high=10, labels=("A", "B", "TIE"), tie="TIE", two_scores=True)
    if style == "pandalm":
        return Scale(labels=("A", "B", "TIE"), aliases=(("1", "A"), ("2", "B")), tie="TIE")
    if style == "auto_j":
        return Scale(labels=("A", "B", "TIE"), tie="TIE") if pairwise else Scale(low=1, high=10)
    return Scale(labels=("A", "B")) if pairwise else Scale(low=1, high=5, integers=True)


def read_native(style: str, reply: str | None, scale: Scale, finish: str = "stop", refusal: str = "") -> Reading:
    """Read a reply in the native form ``style``; a verdict of any other form is none here."""
    whole = read(reply, scale, finish, refusal)
    if whole.status in ("refused", "truncated") and (whole.reason in _CHANNEL or not whole.raw.strip()):
        return whole
    if style in ("judgelm", "pandalm"):
        return _first_line(style, whole, scale, finish)
    if style == "auto_j" and not scale.numeric:
        return _decision(whole)
    wanted = ("result",) if style == "prometheus" else ("bracket", "label_line")
    if whole.status == "ok" and whole.form not in wanted:
        return _none(whole, f"a {whole.form} is not the native form of {style}")
    return whole


def _first_line(style: str, whole: Reading, scale: Scale, finish: str) -> Reading:
    raw = whole.raw
    start = len(raw) - len(raw.lstrip())
    end = raw.find("\n", start)
    head = raw[start : end if end >= 0 else len(raw)]
    # a length stop behind the first line did not touch it
    got = read(head, scale, "stop" if end >= 0 else finish)
    wanted = "two_scores" if style == "judgelm" else "alone"
    if got.status != "ok" or got.form != wanted:
        return _none(whole, got.reason or f"the first line is not the verdict of {style}")
    span = (start + got.span[0], start + got.span[1]) if got.span else None
    return replace(got, raw=raw, span=span, form=style, text_mapped=whole.text_mapped)


def _decision(whole: Reading) -> Reading:
    found = list(_DECISION.finditer(whole.raw))
    values = {m[2] or "TIE" for m in found}
    if len(values) != 1:
        return _none(whole, "no final decision" if not found else "several final decisions")
    last = found[-1]
    value = {"1": "A", "2": "B"}.get(last[2] or "", "TIE")
    return replace(whole, status="ok", value=value, reason="", span=last.span(), form="auto_j")


def _none(whole: Reading, reason: str) -> Reading:
    status = whole.status if whole.status in ("refused", "truncated") else "unparsed"
    return replace(whole, status=status, value=None, reason=reason, span=None, form="", parts=())
