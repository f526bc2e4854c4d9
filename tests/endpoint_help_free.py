"""The strict server of ``tests/models`` and clients that never wait, for tests outside of that folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent / "models"))

import strict_server
from endpoint_help import http_model as http, patient
from strict_server import KEY, Fault as fault, chat, error

from robustjudge.models.base import Settings
from robustjudge.models.http import HttpModel

__all__ = ["KEY", "chat", "endpoint", "error", "fault", "http", "serving"]


@contextmanager
def serving(*faults: Any, **options: Any) -> Iterator[Any]:
    """The strict server, with its key in the environment."""
    os.environ["TEST_KEY"] = KEY
    with strict_server.StrictServer(*faults, **options) as server:
        yield server


@contextmanager
def endpoint(secret: str) -> Iterator[tuple[Any, Any]]:
    """A model whose key is in ``SECRET_KEY`` (= ``secret``), and the server it talks to."""
    old, strict_server.KEY = strict_server.KEY, secret
    try:
        with strict_server.StrictServer() as server:
            yield patient(HttpModel("openai/m", "m", Settings(base_url=server.url, key_env="SECRET_KEY"))), server
    finally:
        strict_server.KEY = old
