"""Defenses by name: the eight of the paper (D1-D8), the extensions (X1-X9), stacks, and every stack up to a depth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from importlib import metadata
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from robustjudge.defenses import threshold
from robustjudge.defenses.ablation import Ablation
from robustjudge.defenses.anchors import Anchor, Anchors
from robustjudge.defenses.base import Chain, NoDefense, Prompting, Screening, Shield, Transforming
from robustjudge.defenses.classifier import Classifier
from robustjudge.defenses.committee import Committee
from robustjudge.defenses.datamark import Datamark
from robustjudge.defenses.delimiters import Delimiters
from robustjudge.defenses.detector import LLMDetector
from robustjudge.defenses.ensembles import OrderEnsemble, PromptEnsemble
from robustjudge.defenses.instructional import Instructional
from robustjudge.defenses.known_answer import KnownAnswer
from robustjudge.defenses.paraphrase import Paraphrase
from robustjudge.defenses.perplexity import Perplexity, WindowedPerplexity
from robustjudge.defenses.random_delimiters import RandomDelimiters
from robustjudge.defenses.retokenize import Retokenize
from robustjudge.defenses.sandwich import Sandwich
from robustjudge.defenses.struq import StruqAdapted
from robustjudge.errors import ConfigError, UnknownName
from robustjudge.judges import Judge, Prompted
from robustjudge.prompts.library import template
from robustjudge.prompts.template import Template

ALIASES: Mapping[str, str] = {
    "D1": "perplexity",
    "D2": "windowed_perplexity",
    "D3": "llm_detector",
    "D4": "retokenize",
    "D5": "delimiters",
    "D6": "sandwich",
    "D7": "instructional",
    "D8": "struq_adapted",
    "X1": "known_answer",
    "X2": "datamark",
    "X3": "random_delimiters",
    "X4": "paraphrase",
    "X5": "classifier",
    "X6": "committee",
    "X7": "order_ensemble",
    "X8": "anchors",
    "X9": "ablation",
    "ppl": "perplexity",
    "naive_llm": "llm_detector",
    "spotlighting": "datamark",
    "struq": "struq_adapted",
}

BUILT: Mapping[str, type[Shield]] = {
    "ablation": Ablation,
    "anchors": Anchors,
    "classifier": Classifier,
    "committee": Committee,
    "datamark": Datamark,
    "delimiters": Delimiters,
    "instructional": Instructional,
    "known_answer": KnownAnswer,
    "llm_detector": LLMDetector,
    "none": NoDefense,
    "order_ensemble": OrderEnsemble,
    "paraphrase": Paraphrase,
    "perplexity": Perplexity,
    "prompt_ensemble": PromptEnsemble,
    "random_delimiters": RandomDelimiters,
    "retokenize": Retokenize,
    "sandwich": Sandwich,
    "struq_adapted": StruqAdapted,
    "windowed_perplexity": WindowedPerplexity,
}

PREVENTION = ("retokenize", "delimiters", "sandwich", "instructional", "struq_adapted")
DETECTION = ("perplexity", "windowed_perplexity", "llm_detector")


GROUP = "robustjudge.defenses"
"""Entry-point group of third-party defenses: name -> class."""


@cache
def known() -> Mapping[str, type[Shield]]:
    """Every defense class by name; a name that two packages offer is an error naming both."""
    made = dict(BUILT)
    for point in metadata.entry_points(group=GROUP):
        if point.name in made or point.name in ALIASES:
            owner = made[point.name].__module__ if point.name in made else "robustjudge"
            raise ConfigError(f"defense {point.name!r} is offered by both {owner} and {point.value}; rename one")
        made[point.name] = point.load()
    return made


def defense_names() -> tuple[str, ...]:
    """Every defense by name, sorted; :data:`ALIASES` holds the paper's numbers."""
    return tuple(sorted(known()))


_SURPRISE = dict.fromkeys(("perplexity", "windowed_perplexity"), " (hf/smollm2, the embedded one)")
"""What tells log-probabilities of a text."""


def defense_of(name: str, given: Mapping[str, Any], base: Path = Path()) -> Shield:
    """A defense from its settings: ``kind`` (default: the name itself) and the fields of that defense.

    ``stack`` lists defenses (names, or settings with a ``kind``), the first being the one that sees the text as
    submitted; ``threshold`` is a calibrated artefact's file, relative to ``base`` (``shipped``: the one frozen for it).
    Judges of a committee are given as ``others: [{model, template}]``, prompts of an ensemble as ``templates: [names]``.
    """
    settings = dict(given)
    if "stack" in settings:
        parts = settings.pop("stack")
        if settings or not isinstance(parts, (list, tuple)) or not parts:
            raise ConfigError(f"defense {name!r}: a stack is a list of defenses and takes no other settings")
        return Chain(tuple(_member(name, p, base) for p in parts))
    kind = str(settings.pop("kind", name))
    kind = ALIASES.get(kind, kind)
    cls = known().get(kind)
    if cls is None:
        raise UnknownName("defense", kind, (*known(), *ALIASES))
    if "threshold" in settings:
        settings["tau"] = threshold.load(threshold.located(str(settings.pop("threshold")), kind, base))
    return _built(name, kind, cls, settings)


def _member(name: str, part: Any, base: Path) -> Shield:
    if isinstance(part, str):
        return defense_of(part, {}, base)
    if isinstance(part, Mapping) and ("kind" in part or "stack" in part):
        return defense_of(str(part.get("kind", name)), part, base)
    raise ConfigError(f"defense {name!r}: a member of a stack is a name, or settings with a `kind`")


def _built(name: str, kind: str, cls: Any, settings: dict[str, Any]) -> Shield:
    known = {f.name for f in fields(cls)}
    for key in settings:
        if key not in known:
            raise UnknownName(f"setting of defense {kind}", key, (*sorted(known), "threshold"))
    hints = get_type_hints(cls, localns={"Threshold": threshold.Threshold, "Judge": Judge, "Template": Template})
    values = {key: _value(kind, key, value, hints[key]) for key, value in settings.items()}
    try:
        made: Shield = cls(**values)
    except TypeError as fault:
        needs = str(fault).partition("argument")[2].strip(" s:") or str(fault)
        what = f": the model that it asks, as provider/name{_SURPRISE.get(kind, '')}" if needs == "'model'" else ""
        raise ConfigError(f"defense {name!r} ({kind}) needs {needs}{what}") from None
    return made


def _value(kind: str, key: str, value: Any, wanted: Any) -> Any:
    """A setting as its field holds it; a value that the field does not allow is an error, never a silent default."""
    if key == "others":
        return tuple(_judge(kind, v) for v in value)
    if key == "templates":
        return tuple(template(str(v)) for v in value)
    if key == "anchors":
        return tuple(v if isinstance(v, Anchor) else Anchor(**v) for v in value)
    if get_origin(wanted) is Literal and value not in get_args(wanted):
        raise ConfigError(f"{kind}: {key} is {value!r}; it may be {', '.join(map(str, get_args(wanted)))}")
    if wanted in (int, float, str, bool):
        right = isinstance(value, (int, float) if wanted is float else wanted)
        if not right or (isinstance(value, bool) and wanted is not bool):
            raise ConfigError(f"{kind}: {key} is {value!r}, and must be a {wanted.__name__}")
    return tuple(value) if isinstance(value, list) else value


def _judge(kind: str, given: Any) -> Judge:
    if not isinstance(given, Mapping):
        return given  # type: ignore[no-any-return]
    unknown = set(given) - {"model", "template", "family"}
    if unknown or "model" not in given:
        raise ConfigError(f"{kind}: a judge is given as model, template and family")
    prompt = template(str(given.get("template", "robustjudge")))
    return Prompted(str(given["model"]), prompt, family=str(given.get("family", "")))


# --------------------------------------------------------------------------- stacks


def place(defense: Shield) -> int:
    """Where a defense stands in a stack: detectors see the text as submitted, then what asks the judge several times,
    then what rewrites, then what only adds to the prompt."""
    if isinstance(defense, Screening):
        return 0
    if isinstance(defense, (Prompting, StruqAdapted)):
        return 3
    return 2 if isinstance(defense, (Transforming, Datamark, Paraphrase)) else 1


def stacks(
    named: Mapping[str, Shield] | Iterable[tuple[str, Shield]], depth: int = 2
) -> tuple[tuple[str, Shield], ...]:
    """Every stack of one to ``depth`` of the given defenses, each in the one stated order, named ``a+b``.

    Put them into a plan beside ``none``; :func:`robustjudge.measures.tradeoff.ranked` then ranks them.
    """
    items = list(named.items()) if isinstance(named, Mapping) else list(named)
    out: list[tuple[str, Shield]] = []
    for size in range(1, depth + 1):
        for chosen in combinations(items, size):
            ordered = sorted(chosen, key=lambda x: place(x[1]))
            name = "+".join(n for n, _ in ordered)
            out.append((name, ordered[0][1] if size == 1 else Chain(tuple(d for _, d in ordered))))
    return tuple(out)
