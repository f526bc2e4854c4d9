"""MiniLM similarity: cosine of sentence embeddings, a semantic evaluator that needs only a 91 MB folder of weights.

Reimers and Gurevych 2019, "Sentence-BERT"; the model is all-MiniLM-L6-v2 (Apache-2.0).  We load its folder with
transformers and pool ourselves (mean over tokens, then length 1), which equals sentence-transformers and spares that
dependency.  Torch is imported when a text is first rated, never before.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from robustjudge.loading import LOADING
from robustjudge.nouns import Case
from robustjudge.quality.base import Evaluator, MetricUnavailable, Rating, rated
from robustjudge.spec import register

VARIABLE = "ROBUSTJUDGE_MINILM"
"""Environment variable that names the model folder when the setting ``folder`` is empty."""

MAX_TOKENS = 256
"""The model was trained on at most this many tokens; more are cut, and the rating is flagged ``truncated``."""


@lru_cache(maxsize=2)
def _loaded(folder: str) -> tuple[Any, Any]:
    """Tokeniser and model in evaluation mode, from a local folder only."""
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # nothing but the run's own bar prints
    with LOADING:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        return tokenizer, AutoModel.from_pretrained(folder, local_files_only=True).eval()


def embed(folder: str, texts: tuple[str, ...]) -> tuple[tuple[tuple[float, ...], bool], ...]:
    """For each text its unit embedding and whether it was cut at :data:`MAX_TOKENS`.

    Texts are embedded one by one: padding in a batch would change the last digits with the company a text keeps.
    """
    import torch

    tokenizer, model = _loaded(folder)
    out = []
    for text in texts:
        ids = tokenizer(text, truncation=False, verbose=False)["input_ids"]
        cut = len(ids) > MAX_TOKENS
        inputs = tokenizer(text, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
        with torch.inference_mode():
            states = model(**inputs).last_hidden_state[0]
        unit = torch.nn.functional.normalize(states.mean(dim=0), dim=0)
        out.append((tuple(float(x) for x in unit), cut))
    return tuple(out)


@lru_cache(maxsize=4096)
def _embedded(folder: str, text: str) -> tuple[tuple[float, ...], bool]:
    return embed(folder, (text,))[0]


@register("minilm")
@dataclass(frozen=True)
class MiniLM(Evaluator):
    """Cosine similarity of text and reference, best reference; negative cosines (``raw``) are clipped to 0.

    ``folder`` holds ``config.json``, ``model.safetensors`` and the tokeniser; empty: ``$ROBUSTJUDGE_MINILM``.
    """

    name: ClassVar[str] = "minilm"
    folder: str = ""

    def _folder(self) -> str:
        folder = self.folder or os.environ.get(VARIABLE, "")
        if not folder:
            raise MetricUnavailable(
                self.name, f"no model folder is set; run 'robustjudge models pull minilm' or set ${VARIABLE}"
            )
        for needed in ("config.json", "model.safetensors", "tokenizer.json"):
            if not (Path(folder) / needed).is_file():
                raise MetricUnavailable(self.name, f"{folder} holds no {needed}")
        return folder

    def ready(self) -> None:
        from importlib.util import find_spec

        self._folder()
        missing = [p for p in ("torch", "transformers") if find_spec(p) is None]
        if missing:
            raise MetricUnavailable(self.name, f"{' and '.join(missing)} not installed; install 'robustjudge[text]'")

    def score(self, case: Case, text: str) -> Rating:
        folder = self._folder()
        mine, cut = _embedded(folder, text)
        best, any_cut = -1.0, cut
        for reference in (r for r in case.references if r.strip()):
            theirs, their_cut = _embedded(folder, reference)
            any_cut = any_cut or their_cut
            best = max(best, sum(a * b for a, b in zip(mine, theirs)))
        return rated(self.name, best, truncated=any_cut)

    def close(self) -> None:
        _embedded.cache_clear()
        _loaded.cache_clear()
