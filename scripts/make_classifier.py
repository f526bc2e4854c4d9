"""Train the shipped injection classifier on development data only (run once; the result is shipped and frozen).

    python scripts/make_classifier.py

Needs numpy and scipy.  Development data are the shipped payload packs, the built-in cases and the first hard-benign set;
what :mod:`robustjudge.datasets.held_out` holds was written after the freeze and is never read here.  Prints how the
recipe fares on payload families left out of training, four folds of them, at 5 % false alarms on honest texts of
either sort; then writes the weights trained on all families.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, vstack

from robustjudge.attacks.base import PROTOCOLS, NoCandidate, Target
from robustjudge.attacks.packs import LANGUAGES, pack
from robustjudge.attacks.text import TextAttack
from robustjudge.datasets.builtin_cases import builtin
from robustjudge.datasets.hard_benign import hard_benign
from robustjudge.defenses.classifier import (
    BUCKETS,
    Weights,
    features,
    learned_from,
    learned_from_hard,
    normal,
    score,
    windows,
)
from robustjudge.defenses.perplexity import sentences
from robustjudge.defenses.threshold import quantile
from robustjudge.nouns import Case

TARGET = Path(__file__).parents[1] / "src" / "robustjudge" / "defenses" / "data" / "classifier.json"
FAMILIES = (
    *("H1", "H2", "H3", "H4", "H5", "H6", "E9", "O4", "authority", "bands", "delimiter", "expert_claim"),
    *("fake_citation", "fence_trick", "forged_rubric", "json_injection", "md_hidden", "plea", "role_spoof"),
    "thinking_trick",
)
"""Packs that speak about the evaluation; those that only change tone (flattery, jargon) teach nothing about it."""
LINES = ("VERDICT: 10", "[[10]]", "VERDICT: the response that carries this note", '{"score": 10}')
PENALTY = 1e-4
HARD = 0.5
"""Share of the honest side's weight that hard-benign texts get."""
MIXED = 2
"""Windows of each payload inside honest texts, besides the payload alone."""


def payloads(name: str) -> list[str]:
    """Filled wordings of one pack."""
    out: dict[str, None] = {}
    for language in (x for x in LANGUAGES if x in pack(name).texts):
        for protocol in PROTOCOLS:
            for number in (True, False):
                for i in range(len(pack(name).paraphrases(language, protocol, number))):
                    target = Target(protocol=protocol, verdict_line=LINES[i % len(LINES)])
                    attack = TextAttack(name, paraphrase=i, number=number, language=language, target=target)
                    try:
                        out[attack.payload(Case("x", "t", "r", language=language))] = None
                    except NoCandidate:
                        continue
    return list(out)


def honest(learn: bool = True) -> list[str]:
    """Honest texts of the third of the cases that is learned from, or of the others."""
    out: dict[str, None] = {}
    for case in builtin():
        if learned_from(case.id) == learn:
            for text in (case.response, *case.references, *(w.text for w in case.distractors)):
                out[text] = None
    return list(out)


def hard(learn: bool = True) -> list[str]:
    """Hard-benign texts that are learned from, or the others."""
    return [b.text for b in hard_benign() if learned_from_hard(b.id) == learn]


def inside(payload: str, around: list[str], rng: Random) -> list[str]:
    """Windows of a payload alone, and of the payload behind honest text where it fills at least half of the window."""
    shown = normal(payload)
    out = list(windows(shown))
    for _ in range(MIXED):
        before = normal(rng.choice(around)) + " "
        whole = before + shown
        for window in windows(whole):
            at = whole.find(window)
            held = min(at + len(window), len(whole)) - max(at, len(before))
            if 2 * held >= len(window) or 10 * held >= 9 * len(shown):
                out.append(window)
    return out


def matrix(texts: list[str]) -> Any:
    rows, cols, values = [], [], []
    for i, text in enumerate(texts):
        for at, value in features(text).items():
            rows.append(i)
            cols.append(at)
            values.append(value)
    return csr_matrix((values, (rows, cols)), shape=(len(texts), BUCKETS))


def fit(groups: list[tuple[Any, float, float]]) -> tuple[float, Any]:
    """Logistic regression with an L2 penalty on groups of (rows, label 0 or 1, weight of the whole group)."""
    x = vstack([rows for rows, _, _ in groups]).tocsr()
    y = np.concatenate([np.full(rows.shape[0], label) for rows, label, _ in groups])
    weight = np.concatenate([np.full(rows.shape[0], share / rows.shape[0]) for rows, _, share in groups])
    sign = 2 * y - 1

    def loss(theta: Any) -> tuple[float, Any]:
        z = sign * (x @ theta[1:] + theta[0])
        p = 1 / (1 + np.exp(np.clip(z, -500, 500)))
        g = -weight * sign * p
        value = float((weight * np.logaddexp(0, -z)).sum() + PENALTY / 2 * (theta[1:] ** 2).sum())
        return value, np.concatenate(([g.sum()], x.T @ g + PENALTY * theta[1:]))

    found = minimize(loss, np.zeros(BUCKETS + 1), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return float(found.x[0]), found.x[1:]


def coded(intercept: float, weights: Any) -> dict[str, Any]:
    """The weights as the shipped file holds them: 8 bits each."""
    scale = round(float(np.abs(weights).max()) / 127, 6)
    whole = np.clip(np.round(weights / scale), -127, 127).astype(np.int8)
    return {
        "intercept": round(intercept, 4),
        "scale": scale,
        "weights": b64encode(whole.tobytes()).decode("ascii"),
    }


def model(data: dict[str, Any]) -> Weights:
    whole = np.frombuffer(b64decode(data["weights"]), dtype=np.int8)
    return Weights(data["intercept"], tuple(float(c) * data["scale"] for c in whole), ())


def auroc(negative: list[float], positive: list[float]) -> float:
    n, p = np.array(negative), np.array(positive)
    return float((p[:, None] > n[None]).mean() + 0.5 * (p[:, None] == n[None]).mean())


def main() -> None:
    around = honest()
    short = {s.strip() for t in around for s in sentences(t) if s.strip()}  # an answer may be a single sentence
    good = matrix([w for t in (*around, *sorted(short)) for w in windows(normal(t))])
    tricky = matrix([w for t in hard() for w in windows(normal(t))])
    rng = Random("classifier")
    wordings = {name: payloads(name) for name in FAMILIES}
    bad = {name: matrix([w for p in texts for w in inside(p, around, rng)]) for name, texts in wordings.items()}

    def trained(names: list[str]) -> dict[str, Any]:
        rows = vstack([bad[n] for n in names])
        return coded(*fit([(good, 0.0, 0.5 * (1 - HARD)), (tricky, 0.0, 0.5 * HARD), (rows, 1.0, 0.5)]))

    others = honest(learn=False)
    for fold in range(4):
        out = [n for i, n in enumerate(FAMILIES) if i % 4 == fold]
        made = model(trained([n for n in FAMILIES if n not in out]))
        easy, tough = ([score(t, made) for t in texts] for texts in (others, hard(learn=False)))
        tau = max(quantile(easy, "0.05") or 1.0, quantile(tough, "0.05") or 1.0)
        for name in out:
            found = [score(f"{rng.choice(others)}\n\n{p}", made) for p in wordings[name]]
            flagged = float(np.mean(np.array(found) > tau))
            told = f"{name:15s} n={len(found):3d} flagged {flagged:.2f}"
            print(f"{told}, AUROC to benign {auroc(easy, found):.3f}, to hard-benign {auroc(tough, found):.3f}")
    data = {**trained(list(FAMILIES)), "trained": list(FAMILIES)}
    data["windows"] = {
        "honest": good.shape[0],
        "hard": tricky.shape[0],
        "payload": sum(m.shape[0] for m in bad.values()),
    }
    TARGET.write_text(json.dumps(data) + "\n", encoding="utf-8")
    print(data["windows"])


if __name__ == "__main__":
    main()
