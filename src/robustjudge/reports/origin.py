"""Where figures come from: models, families, aliases, versions - read from the manifest, never asked again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from robustjudge.errors import ConfigError
from robustjudge.models.families import UNKNOWN, family_of, same_family
from robustjudge.models.registry import is_alias


def models(spec: Any) -> Iterator[tuple[str, str]]:
    """Every (model name, declared family) inside a dumped judge or defense, in order."""
    if isinstance(spec, Mapping):
        name = spec.get("model")
        if isinstance(name, str) and name:
            yield name, str(spec.get("family", "") if spec.get("kind") == "prompted" else "")
        for key, value in spec.items():
            if key not in ("template", "sampling"):
                yield from models(value)
    elif isinstance(spec, (list, tuple)):
        for part in spec:
            yield from models(part)


def judges(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Judges with the models behind them, their families, and whether a name may come to mean another model."""
    out = []
    for name, spec in sorted(manifest.get("judges", {}).items()):
        found = list(dict.fromkeys(models(spec)))
        out.append(
            {
                "name": name,
                "models": [{"name": m, "family": family_of(m, f), "alias": alias(m)} for m, f in found],
                "template": _template(spec),
            }
        )
    return out


def _template(spec: Any) -> str:
    if isinstance(spec, Mapping):
        if isinstance(spec.get("template"), Mapping):
            return str(spec["template"].get("name", ""))
        return next((t for v in spec.values() if (t := _template(v))), "")
    if isinstance(spec, list):
        return next((t for v in spec if (t := _template(v))), "")
    return ""


def alias(model: str) -> bool:
    """Whether the provider may put another model behind this name."""
    try:
        return is_alias(model)
    except ConfigError:
        return False


def warnings(manifest: Mapping[str, Any]) -> list[dict[str, str]]:
    """Judge and attacker (or detector) of one family, families unknown, unpinned names."""
    out: list[dict[str, str]] = []
    attackers = sorted({str(t.get("attacker", "")) for t in manifest.get("threats", [])} - {""})
    detectors = sorted({m for d in manifest.get("defenses", {}).values() for m, _ in models(d)})
    for judge in judges(manifest):
        for model in judge["models"]:
            for role, names in (("attacker", attackers), ("detector", detectors)):
                for other in names:
                    out.extend(_related(judge["name"], model, role, other))
            if model["alias"]:
                text = f"{model['name']} is an unpinned name: the provider may put another model behind it"
                out.append({"name": "unpinned_alias", "level": "warning", "text": text})
    for name in sorted({*attackers, *detectors}):
        if alias(name):
            text = f"{name} is an unpinned name: the provider may put another model behind it"
            out.append({"name": "unpinned_alias", "level": "warning", "text": text})
    return [dict(x) for x in dict.fromkeys(tuple(w.items()) for w in out)]


def _related(judge: str, model: Mapping[str, Any], role: str, other: str) -> list[dict[str, str]]:
    theirs = family_of(other)
    same = same_family(str(model["family"]), theirs)
    if same:
        text = f"judge {judge} and the {role} {other} are of one model family ({theirs}): their errors may be shared"
        return [{"name": "same_family", "level": "warning", "text": text}]
    if same is None:
        unknown = other if theirs == UNKNOWN else model["name"]
        text = (
            f"judge {judge} and the {role} {other}: the family of {unknown} is unknown, so a shared one is not excluded"
        )
        return [{"name": "family_unknown", "level": "note", "text": text}]
    return []
