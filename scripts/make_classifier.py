"""Train the shipped injection classifier on payload wordings of some families (run once; the result is shipped).

    python scripts/make_classifier.py

Needs numpy and scipy.  Prints AUROC on families that training never saw and on hard-benign texts.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from robustjudge.attacks.base import PROTOCOLS, NoCandidate, Target
from robustjudge.attacks.packs import LANGUAGES, pack
from robustjudge.attacks.text import TextAttack
from robustjudge.datasets.builtin_cases import builtin
from robustjudge.datasets.hard_benign import hard_benign
from robustjudge.defenses.classifier import BUCKETS, Weights, features, learned_from, normal, score, windows
from robustjudge.defenses.perplexity import sentences
from robustjudge.nouns import Case

TARGET = Path(__file__).parents[1] / "src" / "robustjudge" / "defenses" / "data" / "classifier.json"
TRAINED = ("H1", "H2", "H3", "H4", "delimiter", "fence_trick", "forged_rubric", "json_injection")
HELD_OUT = ("H5", "O4", "thinking_trick", "authority", "expert_claim", "emotion", "flattery")
LINES = ("VERDICT: 10", "[[10]]", "VERDICT: the response that carries this note", '{"score": 10}')
PENALTY = 2e-4


def payloads(names: tuple[str, ...], group: str) -> list[str]:
    """Filled wordings of packs."""
    out: dict[str, None] = {}
    for name in names:
        for language in LANGUAGES:
            if language not in pack(name).texts:
                continue
            for protocol in PROTOCOLS:
                for number in (True, False):
                    n = len(pack(name).paraphrases(language, protocol, number, group))  # type: ignore[arg-type]
                    for i in range(n):
                        target = Target(protocol=protocol, verdict_line=LINES[i % len(LINES)])
                        attack = TextAttack(
                            name,
                            paraphrase=i,
                            number=number,
                            language=language,
                            group=group,
                            target=target,  # type: ignore[arg-type]
                        )
                        try:
                            out[attack.payload(Case("x", "t", "r", language=language))] = None
                        except NoCandidate:
                            continue
    return list(out)


def honest() -> list[str]:
    """Honest texts to learn from, of a third of the cases; the others and the hard-benign set are kept for measuring."""
    out: dict[str, None] = {}
    for case in builtin():
        if not learned_from(case.id):
            continue
        for text in (case.task, case.response, *case.references, *(w.text for w in case.distractors)):
            out[text] = None
    return list(out)


def matrix(texts: list[str]) -> Any:
    rows, cols, values = [], [], []
    for i, text in enumerate(texts):
        for at, value in features(text).items():
            rows.append(i)
            cols.append(at)
            values.append(value)
    return csr_matrix((values, (rows, cols)), shape=(len(texts), BUCKETS))


def fit(x: Any, y: Any, penalty: float = PENALTY) -> tuple[float, Any]:
    """Logistic regression with an L2 penalty, both classes weighted alike."""
    weight = np.where(y == 1, 0.5 / y.sum(), 0.5 / (1 - y).sum())
    sign = 2 * y - 1

    def loss(theta: Any) -> tuple[float, Any]:
        z = sign * (x @ theta[1:] + theta[0])
        p = 1 / (1 + np.exp(np.clip(z, -500, 500)))
        g = -weight * sign * p
        value = float((weight * np.logaddexp(0, -z)).sum() + penalty / 2 * (theta[1:] ** 2).sum())
        return value, np.concatenate(([g.sum()], x.T @ g + penalty * theta[1:]))

    found = minimize(loss, np.zeros(BUCKETS + 1), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return float(found.x[0]), found.x[1:]


def auroc(negative: list[float], positive: list[float]) -> float:
    n, p = np.array(negative), np.array(positive)
    return float((p[:, None] > n[None]).mean() + 0.5 * (p[:, None] == n[None]).mean())


def main() -> None:
    short = {s.strip() for t in honest() for s in sentences(t) if s.strip()}  # an answer may be a single sentence
    good = [w for t in (*honest(), *sorted(short)) for w in windows(normal(t))]
    bad = [w for t in payloads(TRAINED, "train") for w in windows(normal(t))]
    intercept, weights = fit(matrix(good + bad), np.array([0] * len(good) + [1] * len(bad)))
    scale = float(np.abs(weights).max()) / 127
    coded = np.round(weights / scale).astype(np.int8)
    data = {
        "intercept": round(intercept, 4),
        "scale": round(scale, 6),
        "weights": b64encode(coded.tobytes()).decode("ascii"),
        "trained": list(TRAINED),
        "held_out": list(HELD_OUT),
        "windows": {"honest": len(good), "payload": len(bad)},
    }
    TARGET.write_text(json.dumps(data) + "\n", encoding="utf-8")
    model = Weights(data["intercept"], tuple(float(c) * data["scale"] for c in coded), TRAINED, HELD_OUT)  # type: ignore[arg-type]
    hard = [score(b.text, model) for b in hard_benign()]
    easy = [score(t, model) for t in honest()]
    told = [
        f"{len(good)} honest and {len(bad)} payload windows",
        f"honest above .5: {above(easy):.3f}, hard-benign above .5: {above(hard):.3f}",
    ]
    for name in (*TRAINED, *HELD_OUT):
        found = [score(t, model) for t in payloads((name,), "held_out" if name in TRAINED else "all")]
        told.append(
            f"{name:16s} n={len(found):3d} above .5: {above(found):.2f}, AUROC to hard: {auroc(hard, found):.3f}"
        )
    sys.stdout.write("\n".join(told) + "\n")


def above(scores: list[float]) -> float:
    return float(np.mean(np.array(scores) > 0.5))


if __name__ == "__main__":
    main()
