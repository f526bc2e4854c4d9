"""Opens a Hugging Face folder or a GGUF file (dequantised once, then read from a converted copy)."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from robustjudge.errors import ConfigError
from robustjudge.models.gguf import header
from robustjudge.models.pull import cache_home

CONVERTER = "1"
"""Part of the key of converted copies: raised when the conversion changes."""


@dataclass(frozen=True)
class Facts:
    """What can be said of a model before its weights are read."""

    path: Path
    context: int
    templated: bool


def facts(path: Path) -> Facts:
    """Context and chat template of the model at ``path``; :class:`ConfigError` for what is no model."""
    if path.is_file():
        found = header(path)
        return Facts(path, found.context, bool(found.chat_template))
    if not (path / "config.json").is_file():
        raise ConfigError(f"{path} holds no model: neither a GGUF file nor a folder with a config.json")
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        told = path / "tokenizer_config.json"
        tokenizer = json.loads(told.read_text(encoding="utf-8")) if told.is_file() else {}
    except ValueError as fault:
        raise ConfigError(f"{path}: a configuration file is no JSON: {fault}") from None
    templated = bool(tokenizer.get("chat_template")) or (path / "chat_template.jinja").is_file()
    inner = config.get("text_config") or config
    return Facts(path, int(inner.get("max_position_embeddings") or inner.get("n_positions") or 0), templated)


def fingerprint(path: Path) -> str:
    """What tells this model from another under the same name: names, sizes, first and last MiB of its files."""
    files = [path] if path.is_file() else sorted(p for p in path.iterdir() if p.is_file())
    mark = blake2b(digest_size=16)
    for file in files:
        with file.open("rb") as data:
            size = data.seek(0, os.SEEK_END)
            mark.update(f"{file.name} {size}\n".encode())
            for at in (0, max(0, size - (1 << 20))):
                data.seek(at)
                mark.update(data.read(1 << 20))
    return mark.hexdigest()


def opened(path: Path, dtype: str) -> tuple[Any, Any]:
    """(model, tokenizer) in evaluation mode, weights frozen, on the CPU, in ``float32`` or ``float64``."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    if logging.is_progress_bar_enabled():
        logging.disable_progress_bar()  # nothing but the listener prints
    folder = converted(path) if path.is_file() else path
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=getattr(torch, dtype))
    except (OSError, ValueError, KeyError) as fault:
        raise ConfigError(f"{path} cannot be loaded: {str(fault).strip().splitlines()[0]}") from fault
    return model.eval().requires_grad_(False), tokenizer


def converted(path: Path) -> Path:
    """The folder of a GGUF's dequantised copy (float32 safetensors), made at the first use and kept in the cache by
    the file's hash."""
    mark = blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            mark.update(block)
    folder = cache_home() / "converted" / f"{mark.hexdigest()}-{CONVERTER}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".converting-"))
    try:
        _convert(path, work)
        work.replace(folder)
    except OSError as fault:
        if not folder.is_dir():  # another process may have been faster
            raise ConfigError(f"{path} could not be converted into {folder}: {fault}") from fault
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def _convert(path: Path, into: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    named = {"gguf_file": path.name, "local_files_only": True}
    try:
        model = AutoModelForCausalLM.from_pretrained(path.parent, dtype=torch.float32, **named)
        tokenizer = AutoTokenizer.from_pretrained(path.parent, **named)
    except (ValueError, KeyError, ImportError, NotImplementedError) as fault:
        raise ConfigError(f"{path}: this GGUF cannot be dequantised here: {fault}") from fault
    config = model.config
    if hasattr(config, "quantization_config"):  # the saved copy is plain float32, and saving refuses a GGUF marker
        del config.quantization_config
    fresh = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    fresh.load_state_dict(model.state_dict())
    if not tokenizer.chat_template:
        tokenizer.chat_template = header(path).chat_template or None
    fresh.save_pretrained(into)
    tokenizer.save_pretrained(into)
