"""The tiny judges, trained once per session, and the least that is needed to run steps on them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the white-box tests need the extra whitebox")
pytest.importorskip("transformers", reason="the white-box tests need the extra whitebox")

import tiny_judges  # noqa: E402 (torch must be there)

from robustjudge.models.transformers import Transformers  # noqa: E402

torch.set_num_threads(1)  # busy threads on few cores are several times slower than one

REUSE = "ROBUSTJUDGE_TINY_JUDGES"
"""Environment variable: a folder in which the trained judges are kept from one session to the next."""


@pytest.fixture(scope="session")
def tiny_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folder of each kind of tiny judge."""
    root = Path(os.environ[REUSE]) if os.environ.get(REUSE) else tmp_path_factory.mktemp("tiny")
    wanted = {kind: root / kind for kind in tiny_judges.KINDS}
    if not all((folder / "config.json").is_file() for folder in wanted.values()):
        tiny_judges.train_all(root)
    return wanted


@pytest.fixture(scope="session")
def tiny(tiny_folders: dict[str, Path]) -> Iterator[dict[str, Transformers]]:
    """The tiny judges' models, opened once."""
    made = {kind: Transformers(str(folder), threads=1) for kind, folder in tiny_folders.items()}
    yield made
    for model in made.values():
        asyncio.run(model.close())


@pytest.fixture(scope="session")
def raw_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the tiny shape with random weights: for tests of the arithmetic."""
    torch.manual_seed(7)
    model: Any = tiny_judges.LlamaForCausalLM(tiny_judges.config())
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 2:
                weight.normal_(0.0, 0.15)
    return tiny_judges.save(model, tmp_path_factory.mktemp("raw"))
