"""Make the BPE merge table of the re-tokenization defense from the built-in texts (run once; the result is shipped).

python scripts/make_merges.py
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from robustjudge.datasets.builtin_cases import builtin
from robustjudge.datasets.hard_benign import hard_benign
from robustjudge.defenses.retokenize import WORD

TARGET = Path(__file__).parents[1] / "src" / "robustjudge" / "defenses" / "data" / "merges.txt"
SIZE = 4000


def texts() -> list[str]:
    """Every built-in text of ours: tasks, answers, references and honest texts."""
    out = [b.text for b in hard_benign()]
    for case in builtin():
        out += [case.task, case.response, *case.references, *(w.text for w in case.distractors)]
    return out


def learned(words: Counter[str], size: int) -> list[tuple[str, str]]:
    """The first ``size`` merges of byte-pair encoding over characters; ties go to the alphabetically first pair."""
    split = {w: list(w) for w in words}
    merges: list[tuple[str, str]] = []
    while len(merges) < size:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, n in words.items():
            for pair in zip(split[word], split[word][1:]):
                pairs[pair] += n
        if not pairs:
            break
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        for word, parts in split.items():
            if best[0] not in parts:
                continue
            i, joined = 0, []
            while i < len(parts):
                if i + 1 < len(parts) and (parts[i], parts[i + 1]) == best:
                    joined.append(parts[i] + parts[i + 1])
                    i += 2
                else:
                    joined.append(parts[i])
                    i += 1
            split[word] = joined
    return merges


def main() -> None:
    words = Counter(w for t in texts() for w in WORD.findall(t) if len(w) <= 40)
    merges = learned(words, SIZE)
    head = "# Byte-pair merges in order, one a line; made by scripts/make_merges.py from the built-in texts.\n"
    TARGET.write_text(head + "".join(f"{a} {b}\n" for a, b in merges), encoding="utf-8")
    sys.stdout.write(f"{len(merges)} merges from {sum(words.values())} words\n")


if __name__ == "__main__":
    main()
