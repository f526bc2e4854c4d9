"""What the asking defenses share: a fenced prompt with a per-request code, and strict reading of a yes or no."""

from __future__ import annotations

import re

from robustjudge import spec
from robustjudge.nouns import Call, Message, Sampling, Slate, Text

ROLE = "detector"

_ANSWER = re.compile(r"[\s*_`\"'#>-]*(?:answer\s*[:=]\s*)?[\s*_`\"']*(yes|no)[\s*_`\"'.!]*", re.IGNORECASE)
_LINE = re.compile(r"[\s*_`\"'#>-]*answer\s*[:=]\s*[\s*_`\"']*(yes|no)[\s*_`\"'.!]*", re.IGNORECASE)


def ask(model: str, instruction: str, text: str, slate: Slate, max_tokens: int, reminder: str = "") -> Call:
    """One call that shows ``text`` as fenced data after ``instruction``; the fence carries a code drawn from both, which
    the text cannot hold."""
    mark = spec.digest("fence", instruction, slate.replica, text)[:16]
    shown = text.replace(mark, mark[:8] + "\\" + mark[8:])
    parts = (
        Text(f"{instruction}\n\nThe text stands between the two marks with the code {mark}.\n\n[BEGIN TEXT {mark}]\n"),
        Text(shown, "candidate/0"),
        Text(f"\n[END TEXT {mark}]" + (f"\n\n{reminder}" if reminder else "")),
    )
    return Call(model, (Message("user", parts),), Sampling(0.0, max_tokens), slate.replica, ROLE)


def yes_or_no(reply: str) -> bool | None:
    """True for yes, False for no, ``None`` for anything else: the whole reply, or its one answer line, must be it.

    "eyes", "yes, but no", an empty reply and two different answers are all unreadable.
    """
    whole = _ANSWER.fullmatch(reply)
    found = {whole[1].lower()} if whole else {m[1].lower() for x in reply.splitlines() if (m := _LINE.fullmatch(x))}
    return found == {"yes"} if len(found) == 1 else None
