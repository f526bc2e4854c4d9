"""Reading ``robustjudge.yaml``: clear errors with file, key and the nearest known name."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from robustjudge.config.schema import Config
from robustjudge.errors import ConfigError


def read_config(path: Path | None, overrides: dict[str, Any] | None = None) -> Config:
    """The configuration of a file (or the defaults), with flags laid over it.

    Raises :class:`ConfigError` naming file, key, what was expected and the nearest known key.
    """
    data: Any = {}
    where = "command line"
    if path is not None:
        where = str(path)
        data = read_table(path) if path.name == "pyproject.toml" else read_yaml(path)
    data = {**data, **{k: v for k, v in (overrides or {}).items() if v is not None}}
    config: Config = validated(Config, data, where)
    return config


def found(path: Path | None) -> Path | None:
    """The configuration to read: the one given, else ``robustjudge.yaml``, else ``pyproject.toml`` with a table
    ``[tool.robustjudge]``."""
    if path is not None:
        return path
    for candidate in (Path("robustjudge.yaml"), Path("pyproject.toml")):
        if candidate.is_file() and (candidate.suffix == ".yaml" or read_table(candidate)):
            return candidate
    return None


def read_table(path: Path) -> dict[str, Any]:
    """The table ``[tool.robustjudge]`` of a ``pyproject.toml``; empty when it has none."""
    import tomllib

    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise ConfigError(f"{path}: cannot be read ({fault})") from None
    table = data.get("tool", {}).get("robustjudge", {})
    return table if isinstance(table, dict) else {}


@cache
def _once() -> Any:
    """The safe loader, but a key that stands twice in one mapping is an error: the last one would win in silence."""
    import yaml

    class Once(yaml.SafeLoader):
        pass

    def mapping(loader: Any, node: Any) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value == "<<" or not isinstance(key.value, str):
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} stands twice in one mapping", key.start_mark
                )
            seen.add(key.value)
        loader.flatten_mapping(node)
        made: dict[Any, Any] = yaml.constructor.SafeConstructor.construct_mapping(loader, node, deep=True)
        return made

    Once.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    return Once


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; syntax errors carry line and column."""
    import yaml

    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; `robustjudge init` writes one") from None
    except (OSError, UnicodeDecodeError) as fault:
        raise ConfigError(f"{path}: cannot be read ({fault})") from None
    try:
        data = yaml.load(text, _once())
    except yaml.YAMLError as fault:
        mark = getattr(fault, "problem_mark", None)
        if mark is None:
            raise ConfigError(f"{path}: not valid YAML: {fault}") from None
        told = ", ".join(x for x in (getattr(fault, "context", ""), getattr(fault, "problem", "")) if x)
        raise ConfigError(f"{path}, line {mark.line + 1}, column {mark.column + 1}: not valid YAML: {told}") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected a mapping of keys at the top, found {type(data).__name__}")
    return data


def validated(model: Any, data: Any, where: str) -> Any:
    """``data`` as ``model``; every fault of the file in one error."""
    from pydantic import ValidationError

    try:
        return model.model_validate(data)
    except ValidationError as fault:
        lines = []
        for e in fault.errors():
            at = ".".join(str(x) for x in e["loc"])
            if e["type"] == "extra_forbidden":
                known = _fields(model, e["loc"][:-1])
                near = get_close_matches(str(e["loc"][-1]), known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
                lines.append(f"{where}: unknown key {at!r}; {hint}")
            else:
                lines.append(f"{where}: {at or 'top'}: {e['msg']} (got {str(e.get('input'))[:80]!r})")
        raise ConfigError("\n".join(lines)) from None


def _fields(model: Any, path: tuple[Any, ...]) -> list[str]:
    """The known keys at a place of the schema."""
    from typing import get_args

    from pydantic import BaseModel

    here: Any = model
    for step in path:
        if isinstance(here, type) and issubclass(here, BaseModel):
            if step not in here.model_fields:
                continue
            here = here.model_fields[step].annotation
        inner = [a for a in get_args(here) if isinstance(a, type) and issubclass(a, BaseModel)]
        here = inner[0] if inner else here
    return list(here.model_fields) if isinstance(here, type) and issubclass(here, BaseModel) else []
