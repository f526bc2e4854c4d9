"""``calibrate_judge``: the three-argument calibration of *The Judge Problem*, without its five defects.

No positives is unknown and not blindness; lengths, duplicate ids and unknown labels are errors with their rows; labels
are compared with the declared set and never by truthiness; the grader is asked once per item; unread verdicts are a
third column.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Protocol

from robustjudge import __version__
from robustjudge.errors import DataError
from robustjudge.measures.base import rows
from robustjudge.measures.confusion import confusion
from robustjudge.nouns import Verdict
from robustjudge.profile.build import binary_statistics, confusion_section, needed, now
from robustjudge.profile.checks import better_than_chance, polarity
from robustjudge.profile.package import Check, JudgeProfile
from robustjudge.spec import canonical

KNOWN_PAIRS: tuple[tuple[Hashable, Hashable], ...] = (
    (True, False),
    (1, 0),
    ("SUCCESS", "FAILURE"),
    ("success", "failure"),
    ("YES", "NO"),
    ("yes", "no"),
    ("positive", "negative"),
    ("pass", "fail"),
    ("1", "0"),
    ("true", "false"),
)


class Labeller(Protocol):
    """Anything that grades an item with ``label``."""

    def label(self, item: Any) -> Any: ...


Grader = Callable[[Any], Any] | Labeller


def calibrate_judge(
    subset: Sequence[Any],
    human_labels: Sequence[Hashable],
    grader: Grader,
    *,
    labels: tuple[Hashable, Hashable] | None = None,
    judge_id: str = "",
    rubric: str = "",
    design: str = "unknown",
    population: str = "",
    half_width: float = 0.1,
) -> JudgeProfile:
    """Ask ``grader`` once for each item of ``subset`` and compare with ``human_labels``.

    ``labels`` is (positive, negative); without it the pair is recognised when all human labels belong to one common
    pair such as True/False, 1/0 or SUCCESS/FAILURE, else it must be declared.  A grader answers a label, a
    :class:`Verdict`, or None for a reply it could not read.  ``design`` says how the subset was drawn; unknown ones
    describe this subset only.  Raises :class:`DataError` for unequal lengths, duplicate ids or undeclared labels.
    """
    if len(subset) != len(human_labels):
        raise DataError(
            f"{len(subset)} items but {len(human_labels)} human labels: every item needs exactly one, so nothing was graded"
        )
    _no_duplicates(subset)
    human_labels = [_native(v) for v in human_labels]
    positive, negative = labels if labels is not None else _recognised(human_labels)
    known = {(type(v), v) for v in (positive, negative)}
    bad = [i for i, v in enumerate(human_labels) if (type(v), v) not in known]
    if bad:
        told = ", ".join(sorted({repr(human_labels[i]) for i in bad})[:5])
        raise DataError(f"human labels: {told} not among {positive!r}, {negative!r}; row(s) {rows(bad)}")
    ask = _asker(grader)
    unread: dict[str, int] = {}
    verdicts: list[Hashable | None] = []
    for item in subset:
        label, status = _answer(ask(item))
        if status != "ok":
            unread[status] = unread.get(status, 0) + 1
        verdicts.append(label)
    c = confusion(human_labels, verdicts, positive, negative)
    checks = [polarity(c), better_than_chance(c), Check("label_set", "pass"), Check("second_human", "not_run")]
    stored = canonical([[str(h), None if v is None else str(v)] for h, v in zip(human_labels, verdicts)])
    return JudgeProfile(
        judge_id=judge_id,
        rubric={
            "text": rubric,
            "labels": [str(positive), str(negative)],
            "positive_label": str(positive),
        },
        population={"description": population, "design": design},
        humans={"raters": 1, "n_items": len(subset), "agreement": {}},
        confusion=confusion_section(c, unread, str(positive), str(negative)),
        checks=tuple(checks),
        outcome="inconclusive",
        refusal="one human label per item: agreement between people was not measured, so nothing is certified",
        labels_needed=needed(c, half_width),
        created=now(),
        tool_version=__version__,
        data_sha256=sha256(stored.encode()).hexdigest(),
        **binary_statistics(c),
    )


def _asker(grader: Grader) -> Callable[[Any], Any]:
    method = getattr(grader, "label", None)
    if callable(method):
        return method  # type: ignore[no-any-return]
    if callable(grader):
        return grader
    raise DataError(f"a grader is a callable or has .label(item); {type(grader).__name__} is neither")


def _native(value: Any) -> Any:
    """A NumPy scalar as the Python value it holds; anything else unchanged."""
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value


def _answer(given: Any) -> tuple[Hashable | None, str]:
    given = _native(given)
    if given is None:
        return None, "unparsed"
    if isinstance(given, Verdict):
        return (given.label, "ok") if given.status == "ok" else (None, given.status)
    if not isinstance(given, Hashable):
        raise DataError(f"a grader answers a label, a Verdict or None, not {type(given).__name__}")
    return given, "ok"


def _no_duplicates(subset: Sequence[Any]) -> None:
    seen: dict[Hashable, int] = {}
    for i, item in enumerate(subset):
        if isinstance(item, Mapping):
            name = item.get("item_id", item.get("id"))
        else:
            name = getattr(item, "id", None)
        if name is None or not isinstance(name, Hashable):
            continue
        if name in seen:
            raise DataError(f"item id {name!r} occurs twice, in rows {seen[name]} and {i}; nothing was graded")
        seen[name] = i


def _recognised(human_labels: Sequence[Hashable]) -> tuple[Hashable, Hashable]:
    if not human_labels:
        return "SUCCESS", "FAILURE"
    seen = {(type(v), v) for v in human_labels}
    for pair in KNOWN_PAIRS:
        if seen <= {(type(v), v) for v in pair}:
            return pair
    told = ", ".join(sorted({repr(v) for v in human_labels})[:5])
    raise DataError(f"which of the human labels ({told}) is the positive one?  Declare labels=(positive, negative)")
