"""The built-in templates: data files of parts per protocol, put together in their stated order."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from robustjudge.errors import TemplateError, UnknownName
from robustjudge.prompts.reply import ReplyForm
from robustjudge.prompts.slots import hidden
from robustjudge.prompts.template import CODES, DATA_NOTE, Form, Part, PromptMessage, Template
from robustjudge.scales import Scale, letters, likert, success_failure, yes_no
from robustjudge.scales.native import STYLES, native_scale

PROTOCOLS = ("pointwise", "pairwise", "best_of")
LINEAGES = (
    "vanilla",
    "arena_hard",
    "google_vertex",
    "pandalm",
    "prometheus2",
    "judgelm",
    "auto_j",
    "skywork",
    "chateval",
)
"""The nine templates of the paper (Table II), in its order."""

_LAYOUT = {
    "pointwise": "{history_section}Task given to the author:\n{task}\n\n{reference_section}Response to judge:\n{response}",
    "pairwise": "{history_section}Task given to both authors:\n{task}\n\nResponse A:\n{response_a}\n\n"
    "Response B:\n{response_b}",
    "best_of": "{history_section}Task given to all authors:\n{task}\n\n{responses}",
}
_TOP = {
    "name",
    "lineage",
    "note",
    "order",
    "parts",
    "scale",
    "fence",
    "append_verdict",
    "layout",
    "native",
    "brief",
    "syntax",
} | {
    "definition",
    "data_note",
    "protocols",
}


@cache
def template(name: str) -> Template:
    """The built-in template ``name``.  Raises :class:`UnknownName` with the nearest names."""
    return from_toml(source(name), f"{name}.toml")


def source(name: str) -> str:
    """The data file of the built-in template ``name`` as it is shipped."""
    if name not in template_names():
        raise UnknownName("template", name, template_names())
    return files("robustjudge.prompts").joinpath("templates", f"{name}.toml").read_text(encoding="utf-8")


@cache
def template_names() -> tuple[str, ...]:
    """The names of the built-in templates, sorted."""
    folder = files("robustjudge.prompts").joinpath("templates")
    return tuple(sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".toml")))


def from_toml(text: str, where: str) -> Template:
    """A template from a data file: ``name``, ``order`` (component codes) and ``parts`` (per code a text for ``all``
    protocols or one each).  Raises :class:`TemplateError` naming the file and the line."""
    spot = hidden(text)
    if spot is not None:
        raise TemplateError(f"{where}, line {spot[0]}: the file holds {spot[1]}, which cannot be seen; remove it")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise TemplateError(f"{where}: {fault}") from None
    return from_data(data, where)


def from_data(data: Mapping[str, Any], where: str) -> Template:
    """A template from the content of a data file; raises as :func:`from_toml`."""
    for key in data:
        if key not in _TOP:
            raise UnknownName(f"key of {where}", key, tuple(_TOP))
    if "name" not in data:
        raise TemplateError(f"{where}, line 1: the template has no name")
    parts = data.get("parts", {})
    for key, kind, what in (("parts", Mapping, "a table"), ("order", list, "a list"), ("protocols", list, "a list")):
        if key in data and not isinstance(data[key], (kind, tuple) if kind is list else kind):
            raise TemplateError(f"{where}: {key} is {what}, not {type(data[key]).__name__}")
    for protocol in data.get("protocols", ()):
        if protocol not in PROTOCOLS:
            raise UnknownName(f"protocol of {where}", str(protocol), PROTOCOLS)
    for code in (*parts, *data.get("order", ())):
        if code not in CODES:
            raise UnknownName(f"component of {where}", code, CODES)
    wanted = tuple(data.get("protocols", PROTOCOLS))
    forms = {p: _form(data, p, where) for p in PROTOCOLS if p in wanted}
    return Template(
        str(data["name"]),
        forms.get("pointwise"),
        forms.get("pairwise"),
        forms.get("best_of"),
        str(data.get("lineage", "")),
        str(data.get("note", "")),
    )


def _form(data: Mapping[str, Any], protocol: str, where: str) -> Form:
    parts = data.get("parts", {})
    order = data.get("order", list(parts))
    chosen = [Part(code, _variant(parts.get(code, ""), protocol).strip()) for code in order]
    chosen = [p for p in chosen if p.text]
    fence = str(data.get("fence", "nonce"))
    if fence == "nonce" and data.get("data_note", True):
        at = next((i for i, p in enumerate(chosen) if p.code == "RF"), len(chosen))
        chosen.insert(at, Part("", DATA_NOTE))
    layout = _variant(data.get("layout", _LAYOUT), protocol) or _LAYOUT[protocol]
    messages: tuple[PromptMessage, ...] = (
        PromptMessage("system", tuple(chosen)),
        PromptMessage("user", (Part("", layout.strip()),)),
    )
    native = str(data.get("native", ""))
    if native and native not in STYLES:
        raise UnknownName(f"native form of {where}", native, STYLES)
    if not chosen:
        messages = messages[1:]
    scale = native_scale(native, protocol != "pointwise") if native else _scale(data.get("scale", {}), protocol, where)
    return Form(
        protocol,
        messages,
        scale,
        fence=fence,
        append_verdict=bool(data.get("append_verdict", True)) and not native,
        answer=ReplyForm(scale, native) if native else None,
        definition=str(data.get("definition", "")).strip(),
        brief=bool(data.get("brief", False)),
        source=where,
        syntax=str(data.get("syntax", "")),
    )


def _variant(given: Any, protocol: str) -> str:
    """A text for all protocols, or the one for this protocol."""
    if isinstance(given, Mapping):
        return str(given.get(protocol, given.get("all", "")))
    return str(given)


def _scale(given: Any, protocol: str, where: str) -> Scale:
    if given == "success_failure":
        return success_failure()
    if given == "yes_no":
        return yes_no()
    if not isinstance(given, Mapping):
        raise TemplateError(f"{where}: scale is {{low, high, step}}, yes_no or success_failure, not {given!r}")
    for key in given:
        if key not in ("low", "high", "step"):
            raise UnknownName(f"key of the scale of {where}", str(key), ("low", "high", "step"))
    if protocol == "pointwise":
        return likert(given.get("low", 1), given.get("high", 10), given.get("step", 1))
    return letters(2)
