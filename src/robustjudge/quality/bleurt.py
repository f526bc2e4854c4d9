"""BLEURT from local weights, in a worker process with its own environment.

Sellam et al. 2020, "BLEURT: Learning Robust Metrics for Text Generation"; the PyTorch port ``bleurt-pytorch``.  That
package cannot be imported under transformers 5, which the rest of this package uses, so ``install`` makes it an
environment of its own and :mod:`robustjudge.quality.bleurt_worker` runs there.  Nothing is downloaded when scoring.

BLEURT reads at most 512 tokens of reference and text together: longer pairs are flagged ``truncated`` and carry chrF on
the full text as the part ``chrf``.  Raw scores are not confined to [0, 1]; ``raw`` keeps them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from robustjudge.errors import ConfigError
from robustjudge.nouns import Case
from robustjudge.quality.base import Evaluator, MetricUnavailable, Rating, rated, unknown
from robustjudge.quality.chrf import chrf
from robustjudge.quality.worker import Worker, WorkerFault
from robustjudge.spec import register

CHECKPOINT, PYTHON = "ROBUSTJUDGE_BLEURT_CHECKPOINT", "ROBUSTJUDGE_BLEURT_PYTHON"
"""Environment variables used when the settings ``checkpoint`` and ``python`` are empty."""

REQUIREMENTS = ("bleurt-pytorch==0.0.1", "transformers==4.46.3", "torch==2.13.0", "sentencepiece>=0.2,<0.3", "numpy")
"""What the worker's environment holds; the versions the worker was tested with."""

_STARTING = threading.Lock()
_SCRIPT = Path(__file__).with_name("bleurt_worker.py")


def install(folder: Path, *, python: str = sys.executable, pip_options: tuple[str, ...] = ()) -> Path:
    """Create the worker's environment in ``folder`` and return its Python (for ``robustjudge quality install bleurt``).

    Takes minutes and about 1.2 GB.  ``pip_options`` are passed to ``pip install`` (an index URL, for one).  Weights are
    not installed.  Raises :class:`~robustjudge.errors.ConfigError` with the last lines of the step that failed.
    """
    inside = folder / "bin" / "python"
    steps = (
        [python, "-m", "venv", str(folder)],
        [str(inside), "-m", "pip", "install", "--disable-pip-version-check", "-q", *pip_options, *REQUIREMENTS],
        [str(inside), "-c", "import bleurt_pytorch"],
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-5:])
            raise ConfigError(
                f"the BLEURT environment in {folder} could not be made: {' '.join(step[:4])} failed:\n{said}"
            )
    return inside


@register("bleurt")
@dataclass(frozen=True)
class Bleurt(Evaluator):
    """BLEURT of (reference, text), first reference.

    ``checkpoint``: folder of weights; ``python``: interpreter of the environment made by :func:`install`; both fall
    back to their environment variables.  ``timeout_s`` bounds each reply.  A worker that crashes or hangs makes that
    rating unknown, with the reason, and is started again.
    """

    name: ClassVar[str] = "bleurt"
    checkpoint: str = ""
    python: str = ""
    timeout_s: float = 60.0
    _workers: list[Worker] = field(
        default_factory=list, init=False, compare=False, repr=False, metadata={"spec": False}
    )

    def _worker(self) -> Worker:
        with _STARTING:
            return self._made()

    def _made(self) -> Worker:
        if not self._workers:
            checkpoint = self.checkpoint or os.environ.get(CHECKPOINT, "")
            python = self.python or os.environ.get(PYTHON, "")
            if not python or not Path(python).exists():
                raise MetricUnavailable(
                    self.name,
                    f"no worker environment ({python or 'unset'}); "
                    f"run 'robustjudge quality install bleurt' or set ${PYTHON}",
                )
            if not (Path(checkpoint) / "config.json").is_file() or not checkpoint:
                raise MetricUnavailable(
                    self.name,
                    f"no weights: {checkpoint or 'unset'} holds no config.json; set ${CHECKPOINT} to a local folder",
                )
            env = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONUTF8": "1"}
            env.pop("PYTHONPATH", None)  # the worker must see its own packages only
            self._workers.append(Worker([python, str(_SCRIPT), checkpoint], reply_s=self.timeout_s, env=env))
        return self._workers[0]

    def ready(self) -> None:
        try:
            self._worker().start()
        except WorkerFault as fault:
            raise MetricUnavailable(self.name, str(fault)) from None

    def score(self, case: Case, text: str) -> Rating:
        try:
            reply = self._worker().ask({"reference": case.reference, "candidate": text})
        except WorkerFault as fault:
            return unknown(self.name, f"worker {fault}")
        value = reply.get("score")
        if not isinstance(value, (int, float)):
            return unknown(self.name, f"worker error: {reply.get('error', 'a reply without a score')}")
        cut = reply.get("truncated") is True
        parts = (("chrf", chrf(text, (case.reference,))),) if cut else ()
        return rated(self.name, float(value), truncated=cut, parts=parts)

    def close(self) -> None:
        while self._workers:
            self._workers.pop().close()
