"""Every hypothesis about one judge, read off its rows: position, leniency, self-preference, length, and the edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robustjudge.bias import edits
from robustjudge.bias.effects import Effect, Row, edit_effect, mean_of, retest_rate, sign_flip, slots, worth
from robustjudge.bias.finding import Finding
from robustjudge.bias.policy import ITSELF, BiasPolicy
from robustjudge.bias.variants import CLAIMS
from robustjudge.measures.bias_effects import (
    equal_opportunity,
    excess_flips,
    length_controlled_win_rate,
    length_preference_net,
    leniency,
    position,
)
from robustjudge.measures.confusion import Confusion, youden_j
from robustjudge.measures.intervals import wilson
from robustjudge.nouns import Estimate


class Hypotheses:
    """The findings about one judge under one protocol."""

    def __init__(
        self,
        judge: str,
        protocol: str,
        rows: Sequence[Row],
        facts: Mapping[str, Mapping[str, Any]],
        policy: BiasPolicy,
        family: str,
        population: str,
    ) -> None:
        self.judge, self.protocol, self.policy, self.family = judge, protocol, policy, family
        self.facts, self.population = facts, population
        self.degenerate = constant(rows)
        self.by: dict[str, dict[Any, Row]] = {}
        for r in rows:
            self.by.setdefault(r["attack"], {})[r["case_id"], r["seed"]] = r

    def all(self, varied: Mapping[str, Sequence[Row]]) -> list[Finding]:
        """Every finding; ``varied`` holds the rows of the same judge with another prompt, by variant."""
        identity = self.by.get("identity", {})
        twins = {k: r for k, r in identity.items() if k[0].endswith(ITSELF)}
        real = {k: r for k, r in identity.items() if not k[0].endswith(ITSELF)}
        out: list[Finding] = []
        if self.protocol == "pairwise":
            out += self.positions(real, twins)
            out += self.self_preference(real)
            out += self.length(real)
        else:
            out += self.leniency(real, self.by.get("bias/reference", {}))
        base = twins if self.protocol == "pairwise" else real
        for attack, rows in self.by.items():
            if attack.startswith("bias/") and attack != "bias/reference":
                p = edits.found(attack.removeprefix("bias/"))
                e = edit_effect(rows, self.by.get(f"neutral({attack})", {}), base)
                more = {}
                if e.calm is not None:
                    more = {
                        "robustness_rate": e.calm.robustness_rate,
                        "consistency_rate": e.calm.consistency_rate,
                        "calm_effect": e.calm.effect,
                    }
                out.append(self.finding(p.name, p.group, f"{p.claim}, against {p.twin}", e, more))
        for name, changed in varied.items():
            out += self.variant(name, real, [r for r in changed if r["protocol"] == self.protocol])
        if self.degenerate:
            out = [replace(f, decision="degenerate", flags=(*f.flags, "constant_judge")) for f in out]
        return out

    def variant(self, name: str, base: dict[Any, Row], changed: Sequence[Row]) -> list[Finding]:
        """Flips under another prompt beyond the flips of the same prompt asked again."""
        now = {(r["case_id"], r["seed"]): r for r in changed}
        keys = [k for k in base if k in now]
        if not keys:
            return []
        first, again = ([worth(base[k], arm) for k in keys] for arm in ("clean", "attacked"))
        other = [worth(now[k], "clean") for k in keys]
        clusters = [base[k]["cluster"] for k in keys]
        found = excess_flips(first, other, again, clusters)
        read = [(a, b, c) for a, b, c in zip(first, other, clusters) if a is not None and b is not None]
        more = {
            "flips": found.flip_edit,
            "flips_on_repeating": found.flip_repeat,
            "mean_shift": mean_of([b - a for a, b, _ in read], [c for _, _, c in read]),
        }
        e = Effect(found.effect, found.p, retest_rate(base), found.coverage, found.worst, found.drop_p, None)
        return [self.finding(name, "prompt", f"{CLAIMS[name]}, against the same prompt asked again", e, more)]

    def finding(
        self, name: str, group: str, claim: str, e: Effect, more: Mapping[str, Estimate], flags: tuple[str, ...] = ()
    ) -> Finding:
        """A finding whose decision and statement are filled in once the p values are corrected."""
        if e.drop_p is not None and e.drop_p < 0.05:
            flags = (*flags, "unread_differs_by_arm")
        gating = name in self.policy.gating
        return Finding(
            self.judge, name, group, self.protocol, claim, gating, e.effect, e.p, None,
            e.retest, e.coverage, e.worst, e.drop_p, "inconclusive", "", None, flags, more,
        )  # fmt: skip

    # ----------------------------------------------------------------- position

    def positions(self, real: dict[Any, Row], twins: dict[Any, Row]) -> list[Finding]:
        out = []
        for name, rows, claim in (
            ("position", real, "the slot in which an answer stands, over pairs shown in both orders"),
            ("position_identical", twins, "the slot, where both slots hold the same answer"),
        ):
            if not rows:
                continue
            pairs = [slots(r) for r in rows.values()]
            clusters = [r["cluster"] for r in rows.values()]
            found = position([a for a, _ in pairs], [b for _, b in pairs], clusters)
            n = found.n + found.unread
            more = {"consistency": found.consistency} if name == "position" else {}
            if found.shares is not None:
                shares = zip(("consistent", "first", "second", "unread"), found.shares)
                more |= {f"share_{k}": wilson(round(v * n), n) for k, v in shares}
            read = [
                (float(np.sign((a or 0) + (b or 0))), c) for (a, b), c in zip(pairs, clusters) if None not in (a, b)
            ]
            effect = mean_of([g for g, _ in read], [c for _, c in read])
            side = 1.0 if (effect.value or 0) >= 0 else -1.0
            filled = [side if None in (a, b) else float(np.sign((a or 0) + (b or 0))) for a, b in pairs]
            worst = mean_of(filled, clusters)
            p = (
                found.p
                if len(set(clusters)) == len(clusters)
                else sign_flip([g for g, _ in read], [c for _, c in read])
            )
            e = Effect(effect, p, retest_rate(rows), wilson(found.n, n), worst, None, None)
            flags = (f"{found.first} lean to the first slot, {found.second} to the second",)
            out.append(self.finding(name, "position", claim, e, more, flags))
        return out

    # ----------------------------------------------------------------- leniency

    def leniency(self, weak: dict[Any, Row], right: dict[Any, Row]) -> list[Finding]:
        """Passes among answers known to be bad against failures among references known to be good."""
        cut = self.policy.cut
        keys = [k for k in right if k in weak]
        if not keys:
            return []
        bad = {k: worth(weak[k], "clean") for k in keys}
        good = {k: worth(right[k], "attacked") for k in keys}
        fp = sum(v >= cut for v in bad.values() if v is not None)
        tn = sum(v < cut for v in bad.values() if v is not None)
        tp = sum(v >= cut for v in good.values() if v is not None)
        fn = sum(v < cut for v in good.values() if v is not None)
        c = Confusion(tp, fp, fn, tn)
        found = leniency(c)
        read = [k for k in keys if bad[k] is not None and good[k] is not None]
        more = {"youden_j": youden_j(c), "passed_bad": wilson(fp, fp + tn), "failed_good": wilson(fn, fn + tp)}
        shifts = [(s, weak[k]["cluster"]) for k in keys if (s := self.shift(weak[k])) is not None]
        if shifts:
            more["mean_bias"] = mean_of([s for s, _ in shifts], [c for _, c in shifts])
        gaps = [float((bad[k] or 0) >= cut) - float((good[k] or 0) < cut) for k in read]
        clusters = [weak[k]["cluster"] for k in read]
        effect = mean_of([g / 2 for g in gaps], clusters, 0.5)
        lost = len(keys) - len(read)
        side = 1.0 if (effect.value or 0) >= 0 else -1.0
        worst = mean_of([*(g / 2 for g in gaps), *([side / 2] * lost)], [*clusters, *range(lost)], 0.5)
        e = Effect(effect, found.test.exact_p, retest_rate(weak), wilson(len(read), len(keys)), worst, None, None)
        claim = f"passing more than is due (pass: {cut:g} of the scale), on bad answers and good references"
        return [self.finding("leniency", "leniency", claim, e, more)]

    def shift(self, row: Row) -> float | None:
        """Judge less expected score of the untouched answer, as a share of the scale."""
        expected = self.facts.get(row["case_id"], {}).get("expected")
        if expected is None or row["clean_status"] != "ok" or row["scale_high"] is None:
            return None
        gap: float = (float(row["clean_score"]) - expected) / (float(row["scale_high"]) - float(row["scale_low"]))
        return min(1.0, max(-1.0, gap))

    # ----------------------------------------------------------------- self-preference

    def self_preference(self, real: dict[Any, Row]) -> list[Finding]:
        """P(picks own | people pick own) - P(picks other | people pick other) over pairs with one own answer."""
        from robustjudge.models.families import family_of

        counts = {True: [0, 0], False: [0, 0]}
        other_pairs = [0, 0, 0]
        unread = 0
        for (case, _), row in real.items():
            f = self.facts.get(case, {})
            if not self.family or not f.get("generator") or not f.get("reference_generator"):
                continue
            mine = [family_of(str(f[k])) == self.family for k in ("generator", "reference_generator")]
            if mine[0] == mine[1]:
                continue
            value = worth(row, "clean")
            if value is None:
                unread += 1
                continue
            picked = None if value == 0.5 else (value > 0.5)  # the response, in both orders taken together
            own = picked is not None and (picked == mine[0])
            other_pairs[0 if own else 1 if picked is not None else 2] += 1
            if f.get("human") in ("response", "reference"):
                human_own = (f["human"] == "response") == mine[0]
                counts[human_own][1] += 1
                counts[human_own][0] += picked is not None and own == human_own
        n = sum(other_pairs)
        if not n and not unread:
            return []
        found = equal_opportunity(counts[True][0], counts[True][1], counts[False][0], counts[False][1])
        more = {"own_when_people_pick_own": found.own, "other_when_people_pick_other": found.other}
        decided = other_pairs[0] + other_pairs[1]
        more["picks_own"] = wilson(other_pairs[0], decided)
        flags = () if counts[True][1] and counts[False][1] else ("no_human_labels",)
        e = Effect(found.effect, found.fisher_p, retest_rate(real), wilson(n, n + unread), found.effect, None, None)
        claim = "an answer of the judge's own model family, at equal preference of people"
        return [self.finding("self_preference", "self_preference", claim, e, more, flags)]

    # ----------------------------------------------------------------- length in real pairs

    def length(self, real: dict[Any, Row]) -> list[Finding]:
        """Does the judge take the longer of two real answers more often than is right?"""
        rows = [(worth(r, "clean"), self.facts.get(k[0], {}), r["cluster"]) for k, r in real.items()]
        read = [
            (v, float(f["longer"]), c, f.get("human"))
            for v, f, c in rows
            if v is not None and v != 0.5 and f.get("reference") and f.get("longer")
        ]
        if len(read) < 2:
            return []
        judge = [float((v > 0.5) == (d > 0)) for v, d, _, _ in read]
        better = [float((h == "response") == (d > 0)) for _, d, _, h in read]  # known: the reference, unless people say
        net = length_preference_net(judge, better, [c for _, _, c, _ in read])
        controlled = length_controlled_win_rate([v > 0.5 for v, _, _, _ in read], [d for _, d, _, _ in read])
        more = {
            "judge_takes_longer": net.judge,
            "longer_is_right": net.human,
            "win_rate": controlled.raw,
            "length_controlled_win_rate": controlled.rate,
        }
        n = len(rows)
        e = Effect(net.effect, net.test.exact_p, retest_rate(real), wilson(len(read), n), net.effect, None, None)
        claim = "taking the longer of two real answers, net of how often it is the right one"
        return [self.finding("length_net", "verbosity", claim, e, more)]


def constant(rows: Sequence[Row]) -> bool:
    """The judge said one and the same thing about every text, right or wrong: nothing can be concluded from that.

    ``rows`` of one protocol."""
    if rows and rows[0]["protocol"] == "pointwise":
        scores = {v for r in rows for arm in ("clean", "attacked") if (v := worth(r, arm)) is not None}
        return len(scores) == 1
    letters = {x for r in rows if not r["case_id"].endswith(ITSELF) for x in r["clean_outcomes"] or ""}
    return letters == {"T"}
