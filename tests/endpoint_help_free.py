"""A chat endpoint on loopback for tests outside of ``tests/models``, with the strict server of that folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent / "models"))

import strict_server
from endpoint_help import patient

from robustjudge.models.base import Settings
from robustjudge.models.http import HttpModel


@contextmanager
def endpoint(secret: str) -> Iterator[tuple[Any, Any]]:
    """A model whose key is in ``SECRET_KEY`` (= ``secret``), and the server it talks to."""
    old, strict_server.KEY = strict_server.KEY, secret
    try:
        with strict_server.StrictServer() as server:
            yield patient(HttpModel("openai/m", "m", Settings(base_url=server.url, key_env="SECRET_KEY"))), server
    finally:
        strict_server.KEY = old
