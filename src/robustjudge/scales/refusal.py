"""Rule 6: does the judge itself decline?  Asked only where no verdict was found; quotations do not count."""

from __future__ import annotations

import re
from bisect import bisect_right

_REACH = 600  # a refusal stands at an end of the reply
_DO = (
    r"(?:rate|score|evaluate|grade|judge|assess|compare|review|rank|help|assist|comply|fulfil|fulfill|participate|engage"
    r"|provide|continue|do[ \t](?:that|this)|offer|give[ \t](?:you[ \t])?(?:a|any)[ \t](?:score|rating|grade|verdict))"
)
_DOING = r"(?:rating|scoring|evaluating|grading|judging|assessing|comparing|reviewing)\b"
_ENGLISH = re.compile(
    r"(?:^|(?<=[.!?\n]))[ \t]{0,4}(?:(?:i[ \t]am|i'm|i’m)?[ \t]{0,2}(?:very[ \t]|so[ \t])?sorry|i[ \t]apologi[sz]e"
    r"|my[ \t]apologies|apologies|unfortunately|regrettably|as[ \t]an?[ \t](?:ai|language|large|assistant)\b[^.!?\n]{0,60}?)?"
    r"[,.;:!]?[ \t]{0,3}(?:but[ \t]{1,2})?"
    r"(?:i(?:[ \t]can(?:not|'t|’t|[ \t]not)|[ \t]will[ \t]not|[ \t]won['’]t"
    r"|(?:[ \t]am|'m|’m)[ \t](?:unable|not[ \t]able)[ \t]to"
    r"|(?:[ \t]must|[ \t]have[ \t]to)?[ \t]decline[ \t]to|(?:[ \t]must)?[ \t]refuse[ \t]to)[ \t]{1,2}"
    r"(?:in[ \t]good[ \t]conscience[ \t])?"
    + _DO
    + r"\b|i[ \t](?:will[ \t]not|won['’]t)[ \t]be[ \t]"
    + _DOING
    + r"|i[ \t](?:do[ \t]not|don['’]t|am[ \t]not)[ \t](?:feel[ \t])?comfortable[ \t](?:with[ \t])?"
    + _DOING
    + r"|i[ \t](?:must[ \t]|have[ \t]to[ \t])?(?:decline|refuse)[.!\n])",
    re.IGNORECASE | re.MULTILINE,
)
_OTHERS = re.compile(
    r"申し訳[^。\n]{0,60}(?:できません|致しかねます|いたしかねます)|(?:評価|採点)(?:する)?(?:こと)?(?:は|が)?できません"
    r"|(?:抱歉|对不起|很遗憾)[^。\n]{0,30}(?:无法|不能|不会)|我(?:无法|不能)[^。\n]{0,12}(?:评|打分|判断|提供|帮)"
    r"|죄송[^.\n]{0,60}(?:없습니다)|ich[ ]kann[ ][^.\n]{0,60}nicht[ ](?:bewerten|beurteilen|helfen|vergleichen)"
    r"|lo[ ]siento,?[ ](?:pero[ ])?no[ ]puedo|je[ ]ne[ ]peux[ ]pas[ ](?:évaluer|noter|juger|vous[ ]aider)"
    r"|извините,?[^.\n]{0,30}не[ ]могу",
    re.IGNORECASE,
)


def declines(text: str, quotes: list[tuple[int, int]]) -> bool:
    """Whether an end of ``text`` holds the judge's own refusal; ``quotes`` are the quotations of ``text``."""
    starts = [s for s, _ in quotes]
    pieces = [(0, text)] if len(text) <= 2 * _REACH else [(0, text[:_REACH]), (len(text) - _REACH, text[-_REACH:])]
    for offset, piece in pieces:
        for pattern in (_ENGLISH, _OTHERS):
            for m in pattern.finditer(piece):
                at = offset + m.end() - 1
                i = bisect_right(starts, at) - 1
                if i < 0 or quotes[i][1] < at:
                    return True
    return False
