"""A user's own judge prompt, unchanged: one text, chat messages or files, with their slot names and reply form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from robustjudge.errors import ConfigError, TemplateError, UnknownName
from robustjudge.prompts.library import from_toml
from robustjudge.prompts.lint import asks_for_verdict
from robustjudge.prompts.reply import ReplyForm, load
from robustjudge.prompts.slots import NAMES, TRUSTED, UNTRUSTED
from robustjudge.prompts.template import Form, Part, PromptMessage, Template, one_reading
from robustjudge.scales import Scale
from robustjudge.scales.native import STYLES
from robustjudge.scales.scale import scale_from

_KEYS = ("name", "prompt", "messages", "file", "slots", "scale", "reply", "fence", "syntax", "protocol", "note")
_REPLY_KEYS = ("form", "path", "schema", "pattern", "reader", "parts", "overall")
_DETAILS = {
    "json": ("path", "schema", "parts", "overall"),
    "schema": ("path", "schema", "parts", "overall"),
    "regex": ("pattern",),
    "reader": ("reader",),
}
_TELLING = (("schema", ("schema",)), ("json", ("path", "parts")), ("regex", ("pattern",)), ("reader", ("reader",)))
_FORMS = ("verdict", "labels", "json", "schema", "regex", "reader", *STYLES)
_ROLES = ("system", "developer", "user", "assistant")


def declare(data: Mapping[str, Any], folder: Path | str = ".", where: str = "judge prompt") -> Template:
    """A template from plain data (a parsed YAML mapping or keyword-like Python).

    ``prompt`` (one text), ``file`` (path of one) or ``messages`` (list of ``{role, text | file}``), relative to
    ``folder``; a ``.toml`` file is a prompt in parts and states all of this itself.  ``slots`` maps the user's slot
    names to ours (``task``, ``response``, ``response_a``, ``response_b``,
    ``responses``, ``reference``, ``history``, ``criteria``, ...); ``scale`` as
    :func:`~robustjudge.scales.scale.scale_from` takes it; ``reply`` is a form name or ``{form, path | schema | pattern
    | reader, parts, overall}``.  The protocol follows from the slots unless stated.  ``fence`` is ``plain`` (the default:
    the prompt is attacked as it is) or ``nonce``; ``syntax`` ``format`` reads the text as ``str.format`` does, ``literal``
    leaves doubled braces as they stand (see :class:`~robustjudge.prompts.template.Form`).  Raises
    :class:`TemplateError` or :class:`ConfigError` with file and line for what is missing, doubled or unknown.
    """
    for key in data:
        if key not in _KEYS:
            raise UnknownName(f"field of {where}", str(key), _KEYS)
    if str(data.get("file", "")).endswith(".toml"):
        path = Path(folder) / str(data["file"])
        others = sorted(set(data) - {"file", "name"})
        if others:
            raise ConfigError(f"{where}: {data['file']} states its own {others[0]}; leave it out here")
        made = from_toml(_file(path), str(data["file"]))
        return replace(made, name=str(data["name"])) if data.get("name") else made
    messages, source = _messages(data, Path(folder), where)
    slots = _slots(data.get("slots") or {}, where)
    if "scale" not in data:
        raise ConfigError(f"{where}: state the scale, for example scale: {{min: 1, max: 10}} or {{labels: [yes, no]}}")
    reply_data = data.get("reply", "verdict")
    scale = _scale(data["scale"], reply_data, where)
    syntax = str(data.get("syntax") or "")
    if not syntax:
        one_reading(messages, source)
    protocol = str(data.get("protocol") or _protocol(messages, slots, source, syntax))
    if protocol not in ("pointwise", "pairwise", "best_of"):
        raise UnknownName(f"protocol of {where}", protocol, ("pointwise", "pairwise", "best_of"))
    if protocol != "pointwise" and scale.numeric:
        raise ConfigError(f"{where}: a {protocol} judge answers with labels, not with numbers; give scale.labels")
    form = Form(
        protocol,
        messages,
        scale,
        fence=str(data.get("fence", "plain")),
        append_verdict=False,
        slots=slots,
        answer=reply(reply_data, scale, where),
        source=source,
        syntax=syntax,
    )
    _all_used(form, slots, source)
    if form.answer is not None and form.answer.style == "verdict" and not asks_for_verdict(form):
        last = sum(m.text.count("\n") for m in messages) + 1
        raise TemplateError(
            f"{source}, line {last}: the prompt does not say how the verdict is to be written, and nobody could read it;"
            " add {verdict} there, or declare another form as reply"
        )
    name = str(data.get("name") or Path(source).stem)
    forms: dict[str, Form] = {protocol: form}
    return Template(
        name, forms.get("pointwise"), forms.get("pairwise"), forms.get("best_of"), note=str(data.get("note", ""))
    )


def reply(data: Any, scale: Scale, where: str = "judge prompt") -> ReplyForm:
    """The reply form declared by ``data``: a form name, or a mapping with its details."""
    given: Mapping[str, Any] = {"form": data} if isinstance(data, str) else data
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where}: reply is a form name or a mapping, not {type(data).__name__}")
    for key in given:
        if key not in _REPLY_KEYS:
            raise UnknownName(f"field of the reply of {where}", str(key), _REPLY_KEYS)
    form = str(given.get("form") or _form_of(given))
    if form not in _FORMS:
        raise UnknownName(f"reply form of {where}", form, _FORMS)
    idle = sorted(k for k in given if k != "form" and k not in _DETAILS.get(form, ()))
    if idle:
        raise ConfigError(f"{where}: the reply form {form} has no {' and no '.join(idle)}; {_takes(form)}")
    schema = given.get("schema") or ""
    text = schema if isinstance(schema, str) else json.dumps(schema, sort_keys=True, separators=(",", ":"))
    if form == "schema" and not text:
        raise ConfigError(f"{where}: the reply form schema needs a JSON schema")
    if text:
        _checked_schema(text, where)
    parts = given.get("parts") or {}
    if not isinstance(parts, (Mapping, list, tuple)):
        raise ConfigError(f"{where}: parts is a mapping of sub-scores to their paths, or a list of paths")
    if form == "reader":
        load(str(given.get("reader") or ""))  # a reader that is not there is refused now, not in the middle of a run
    pairs = parts.items() if isinstance(parts, Mapping) else [(str(p).rpartition(".")[2], p) for p in parts]
    return ReplyForm(
        scale,
        "json" if form == "schema" else form,
        str(given.get("path") or ""),
        text,
        str(given.get("pattern") or ""),
        str(given.get("reader") or ""),
        tuple((str(k), str(v)) for k, v in pairs),
        str(given.get("overall") or ""),
    )


def _form_of(given: Mapping[str, Any]) -> str:
    """The form that the details of a reply imply where none is named."""
    for form, keys in _TELLING:
        if any(given.get(k) for k in keys):
            return form
    return "verdict"


def _takes(form: str) -> str:
    """What a reply form may state, in words."""
    details = _DETAILS.get(form, ())
    return f"it takes {', '.join(details)}" if details else "it takes nothing else"


def _checked_schema(text: str, where: str) -> None:
    from jsonschema import Draft202012Validator  # loaded only where a schema was declared
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(json.loads(text))
    except (ValueError, SchemaError) as fault:
        raise ConfigError(f"{where}: the reply schema is no JSON schema: {str(fault).splitlines()[0]}") from None


def _messages(data: Mapping[str, Any], folder: Path, where: str) -> tuple[tuple[PromptMessage, ...], str]:
    given = [k for k in ("prompt", "file", "messages") if data.get(k)]
    if len(given) != 1:
        what = " and ".join(given) if given else "none"
        raise ConfigError(f"{where}: give exactly one of prompt, file and messages (given: {what})")
    if given[0] == "prompt":
        return (_message("user", str(data["prompt"])),), where
    if given[0] == "file":
        path = folder / str(data["file"])
        return (_message("user", _file(path)),), str(data["file"])
    rows = data["messages"]
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise ConfigError(f"{where}: messages is a list of {{role, text}} or {{role, file}}")
    out = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping) or "role" not in row or not {"text", "content", "file"} & set(row):
            raise ConfigError(f"{where}: message {number} needs a role and a text (or a file)")
        role = str(row["role"])
        if role not in _ROLES:
            raise UnknownName(f"role of message {number} of {where}", role, _ROLES)
        text = _file(folder / str(row["file"])) if "file" in row else str(row.get("text", row.get("content", "")))
        out.append(_message(role, text))
    return tuple(out), where


def _message(role: str, text: str) -> PromptMessage:
    return PromptMessage(role, (Part("", text),))


def _file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as fault:
        raise TemplateError(f"{path}: {fault.strerror or fault}") from None
    except UnicodeDecodeError as fault:
        raise TemplateError(f"{path}: byte {fault.start} is not UTF-8") from None


def _slots(given: Any, where: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where}: slots maps your slot names to ours, for example {{question: task}}")
    seen: dict[str, str] = {}
    for theirs, ours in given.items():
        if ours not in NAMES:
            raise UnknownName(f"slot of {where}", str(ours), tuple(sorted(NAMES)))
        if ours in seen and ours in UNTRUSTED:
            raise TemplateError(f"{where}: slots {seen[ours]!r} and {theirs!r} both stand for {ours!r}; use one")
        seen[str(ours)] = str(theirs)
    return tuple((str(k), str(v)) for k, v in given.items())


def _scale(given: Any, reply_data: Any, where: str) -> Scale:
    if isinstance(given, Scale):
        return given
    if isinstance(given, (list, tuple)):
        given = {"labels": given}
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where}: scale is {{min, max}}, {{labels}} or a list of labels")
    scale = scale_from(given)
    tie = scale.tie_label
    return scale if scale.tie == tie else scale_from({**given, "tie": tie})


def _protocol(messages: tuple[PromptMessage, ...], slots: tuple[tuple[str, str], ...], source: str, syntax: str) -> str:
    from robustjudge.prompts.slots import parse

    names = {s.slot for m in messages for s in parse(m.text, source, slots, syntax=syntax)}
    if names & {"response_a", "response_b"}:
        return "pairwise"
    return "best_of" if "responses" in names else "pointwise"


def _all_used(form: Form, slots: tuple[tuple[str, str], ...], source: str) -> None:
    used = {s.slot for m in form.segments for s in m if s.slot}
    for theirs, ours in slots:
        if ours not in used and ours not in TRUSTED:
            raise TemplateError(
                f"{source}, line 1: the declared slot {{{theirs}}} ({ours}) does not stand in the prompt"
            )
