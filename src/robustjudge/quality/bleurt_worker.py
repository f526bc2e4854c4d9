"""The BLEURT worker: a plain script that runs in its own environment and scores pairs over standard input and output.

Not imported by the package.  Needs ``bleurt-pytorch`` (whose import fails under transformers 5).  One JSON object a
line: it writes ``{"ready": true, ...}`` or ``{"failed": why}`` first, then for each request
``{"id", "reference", "candidate"}`` one reply ``{"id", "score", "tokens", "truncated"}`` or ``{"id", "error"}``.
It ends when its input ends.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

MAX_TOKENS = 512


def load(checkpoint: str) -> tuple[Any, Any]:
    """Model and tokeniser of a local checkpoint: SentencePiece (BLEURT-20 family) or WordPiece (the older ones)."""
    package = import_module("bleurt_pytorch")
    folder = Path(checkpoint)
    if (folder / "spm.model").is_file():
        tokenizer = import_module("bleurt_pytorch.bleurt.tokenization_bleurt_sp").BleurtSPTokenizer
    else:
        tokenizer = package.BleurtTokenizer
    config = package.BleurtConfig.from_pretrained(checkpoint, local_files_only=True)
    model = package.BleurtForSequenceClassification.from_pretrained(
        checkpoint, config=config, local_files_only=True
    ).eval()
    return model, tokenizer.from_pretrained(checkpoint, local_files_only=True)


def score(model: Any, tokenizer: Any, reference: str, candidate: str) -> dict[str, Any]:
    """BLEURT of one pair.  The argument order is (reference, candidate); the reverse is another number."""
    import torch

    whole = tokenizer(reference, candidate, truncation=False, verbose=False)
    inputs = tokenizer(reference, candidate, truncation="longest_first", max_length=MAX_TOKENS, return_tensors="pt")
    with torch.inference_mode():
        value = float(model(**inputs).logits.flatten()[0])
    tokens = len(whole["input_ids"])
    return {"score": value, "tokens": tokens, "truncated": tokens > MAX_TOKENS}


def main(checkpoint: str) -> int:
    """Serve until standard input ends."""
    # replies go to the original standard output; whatever a library prints goes to standard error
    wire = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)

    def say(reply: dict[str, Any]) -> None:
        wire.write(json.dumps(reply) + "\n")
        wire.flush()

    try:
        import torch
        import transformers

        torch.set_num_threads(int(os.environ.get("ROBUSTJUDGE_BLEURT_THREADS", "1")))
        transformers.logging.set_verbosity_error()
        model, tokenizer = load(checkpoint)
    except Exception as fault:
        say({"failed": f"{type(fault).__name__}: {fault}"})
        return 1
    say({"ready": True, "torch": torch.__version__, "transformers": transformers.__version__})
    for line in sys.stdin:
        if not line.strip():
            continue
        request = json.loads(line)
        try:
            reply = score(model, tokenizer, request["reference"], request["candidate"])
        except Exception as fault:
            reply = {"error": f"{type(fault).__name__}: {fault}"}
        say({"id": request["id"], **reply})
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
