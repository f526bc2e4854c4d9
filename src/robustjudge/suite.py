"""Suites: frozen, versioned plans by name; what people quote is a name, a hash and a size, never a list of options."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from robustjudge.errors import ConfigError, UnknownName
from robustjudge.spec import canonical, digest

FREE = ("judges", "models", "max_calls", "max_cost", "policy", "name", "suite", "base", "evaluators")
"""Settings that a user chooses without leaving the frozen plan: the judge, and how it is reached and paid for."""


@cache
def suite_names() -> tuple[str, ...]:
    """The names of the suites, sorted."""
    return tuple(sorted(f.name[:-5] for f in files("robustjudge.suites").iterdir() if f.name.endswith(".yaml")))


def suite_source(name: str) -> str:
    """The file of a suite as it is shipped.  Raises :class:`UnknownName`."""
    if name not in suite_names():
        raise UnknownName("suite", name, suite_names())
    return files("robustjudge.suites").joinpath(f"{name}.yaml").read_text("utf-8")


@cache
def _data(name: str) -> dict[str, Any]:
    import yaml

    data: dict[str, Any] = yaml.safe_load(suite_source(name))
    return data


def about(name: str) -> str:
    """One line about a suite."""
    return str(_data(name)["about"])


def size_of(name: str, size: str) -> str:
    """What is particular to a size of a suite; empty for the full one."""
    return str(_data(name).get("embedded", {}).get("about", "")) if size == "embedded" else ""


def shapes(name: str) -> tuple[str, ...]:
    """The tables that a suite prints."""
    return tuple(_data(name)["shapes"])


def suite_hash(name: str) -> str:
    """The content hash of a suite: equal hashes are equal plans."""
    return digest(canonical(_data(name)))[:12]


def sized(name: str, size: str) -> str:
    """How a run of the suite is quoted: ``paper-rq2@1a2b3c4d5e6f/full``."""
    return f"{name}@{suite_hash(name)}/{size}"


@dataclass(frozen=True)
class Quoted:
    """A suite as a run names it: its name, content hash, size, and the settings that the run changed."""

    name: str
    content: str
    size: str
    changed: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Quoted | None:
        """Read what :func:`quoted` wrote; ``None`` where a run belongs to no suite."""
        whole, _, changed = text.partition("+")
        name, _, rest = whole.partition("@")
        content, _, size = rest.partition("/")
        return cls(name, content, size, tuple(changed.split(",")) if changed else ()) if name else None


def config_of(name: str, own: Mapping[str, Any] | None = None, root: str = "") -> dict[str, Any]:
    """The configuration of a suite for the judges of the user's file or flags (``own``: ``judges``, ``defenses``).

    Without a judge the suite runs at its ``embedded`` size on the embedded model, if it has one.  ``root`` is the
    folder of the published data files: then a paper suite uses them instead of the built-in cases.  Raises
    :class:`UnknownName` for an unknown suite and :class:`ConfigError` where a judge of one's own is needed.
    """
    data = deepcopy(_data(name))
    own = own or {}
    judges = dict(own.get("judges") or {})
    small = data.get("embedded")
    size, shared, config = "full", dict(data.get("judge", {})), data["config"]
    if not judges:
        if small is None:
            raise ConfigError(f"suite {name} needs your judge: give --judge provider/model, or -c FILE with judges")
        size, shared = "embedded", small["judge"]
        judges = {small["model"]: {"model": small["model"]}}
        config = {**config, **small["config"]}
    if root and size == "full":
        if "root" not in data:
            raise ConfigError(f"suite {name} has no published data files to read from a root")
        wanted = data["root"] if isinstance(data["root"], list) else [data["root"]]
        config = {**config, "cases": [{"source": s, "root": root} for s in wanted]}
    if "defenses" in config:
        config["defenses"] = {**config["defenses"], **(own.get("defenses") or {})}
        config["defenses"] = {k: _filled(v, judges) for k, v in config["defenses"].items()}
    crossed = {}
    for judge, given in judges.items():
        alone = bool(given.get("service") or given.get("panel"))
        own_prompt = bool(given.get("prompt") or given.get("messages") or given.get("template"))
        templates = () if alone else tuple(data.get("templates", ()))
        for template in templates or ("",):
            label = f"{judge} / {template}" if template else judge
            told = {k: v for k, v in given.items() if v not in ("", None, False, {}, [])}
            if template:  # the suite's prompts are what is compared: the user's own gives way
                told = {k: v for k, v in told.items() if k not in _PROMPT_KEYS}
            default = {} if alone or (own_prompt and not template) else shared
            crossed[label] = {**default, **told, **({"template": template} if template else {})}
    return {**config, "name": name, "judges": crossed, "suite": sized(name, size)}


_PROMPT_KEYS = ("prompt", "messages", "slots", "reply", "scale", "syntax")


def _filled(settings: Any, judges: Mapping[str, Any]) -> Any:
    """Settings of a defense whose ``{model}`` stands for the first judge's model."""
    model = next((j["model"] for j in judges.values() if j.get("model")), "")
    return {k: model if v == "{model}" else v for k, v in (settings or {}).items()}


def compared(frozen: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[str, ...]:
    """The settings in which a run differs from the frozen plan it names, both in full: such a run is not quoted by the
    suite's name alone.  Judges, models, caps and evaluators are the user's own."""
    keys = sorted({*frozen, *found} - set(FREE))
    return tuple(k for k in keys if frozen.get(k) != found.get(k))


def quoted(suite: str, changed: tuple[str, ...]) -> str:
    """The suite as a run quotes it, with the settings that were changed: ``standard-1@1a2b3c4d5e6f/full+cases``."""
    return f"{suite}+{','.join(changed)}" if changed else suite
