"""A forecast in words, for ``run --dry-run``."""

from __future__ import annotations

from robustjudge.forecast import BYTES_PER_TOKEN, CONCURRENCY, REMOTE_SECONDS, REPLY_TOKENS, Calls, Forecast


def words(f: Forecast) -> str:
    """The forecast as lines of plain text."""
    out = [f"{f.cells:,} trials of {f.cases:,} cases" + (f", {f.adaptive:,} of them adaptive" if f.adaptive else "")]
    if f.refused:
        out.append(f"  {f.refused:,} trials cannot be made (their slates are not defined): they become error rows")
    out.append("calls, with a fresh ledger:")
    out += [f"  {line(c)}" for c in f.calls]
    if f.exact:
        out.append(f"  {f.sent:,} calls in all, exactly (transport retries not counted)")
    elif f.at_most is None:
        names = ", ".join(f.unbounded)
        out.append(f"  no upper bound: {names} has no ceiling; give the threat model a budget, or --max-calls")
    else:
        out.append(f"  at most {f.at_most:,} calls in all, whatever the replies are")
    out.append("cost: " + ("unknown, a price is missing" if f.cost is None else f"{f.cost:.2f} USD"))
    out.append(f"time: about {duration(f.seconds)}")
    out.append(
        f"  (prompt tokens by UTF-8 bytes / {BYTES_PER_TOKEN}; replies of at most {REPLY_TOKENS} tokens; an endpoint takes"
        f" {CONCURRENCY} calls at once, {REMOTE_SECONDS:g} s each; adaptive trials at their ceiling)"
    )
    out.append("precision of a rate at the planned number of cases:")
    for p in f.precision:
        shield = "" if p.defense in ("", "none") else f" behind {p.defense}"
        out.append(
            f"  {p.judge}{shield}, {p.protocol}, n = {p.cases}: +-{100 * p.half_width_50:.0f} points at 50 %,"
            f" +-{100 * p.half_width_10:.0f} at 10 %; a change of {100 * p.detectable:.0f} points from 10 % would be"
            f" detected (80 % power); 0 successes would leave up to {100 * p.zero_bound:.1f} % possible"
        )
    return "\n".join(out)


def line(c: Calls) -> str:
    """One model in one role."""
    if c.at_most is None:
        count = f"{c.sent:,} + unbounded"
    elif c.at_most == c.sent:
        count = f"{c.sent:,} (of {c.asked:,} asked; equal ones are sent once)"
    else:
        count = f"at most {c.at_most:,} ({c.sent:,} of them exact)"
    price = "price unknown" if c.cost is None else f"{c.cost:.2f} USD"
    return f"{c.role} {c.model}: {count}; about {c.prompt_tokens:,} + {c.completion_tokens:,} tokens, {price}"


def duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def pilot_words(expected: dict[str, float]) -> str:
    """What a pilot run lets expect of the adaptive attacks, as lines of plain text."""
    if not expected:
        return "the pilot ran none of this plan's adaptive attacks, so it tells nothing about them"
    rows = [f"  {name}: about {queries:,.0f} victim queries" for name, queries in sorted(expected.items())]
    return "\n".join(["expected of searches, from the pilot's mean per trial:", *rows])
