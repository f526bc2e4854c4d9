"""Small drawings made of numbers and escaped text only: bars with intervals, histograms, budget curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

Fact = Mapping[str, Any]


def _svg(width: int, height: int, label: str, body: str) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{escape(label)}">'
        f"{body}</svg>"
    )


def bar(
    e: Fact | None, null: Fact | None = None, low: float = 0.0, high: float = 1.0, truth: float | None = None
) -> Markup:
    """A rate as a bar with its 95 % interval; a tick where the identity control lies, a diamond at the true rate."""
    width, height = 190, 20
    if e is None or e["value"] is None:
        return _svg(width, height, "undefined", '<text x="2" y="14" class="dim">undefined</text>')

    def x(value: float) -> float:
        return round(6 + (width - 12) * (min(max(value, low), high) - low) / (high - low), 1)

    zero, at = x(max(low, 0.0)), x(e["value"])
    left, span = min(zero, at), abs(at - zero)
    body = f'<rect x="6" y="9" width="{width - 12}" height="2" class="rail"/>'
    body += f'<rect x="{left}" y="5" width="{span:.1f}" height="10" rx="2" class="fill"/>'
    if null is not None and null["value"] is not None:
        body += f'<path d="M{x(null["value"])} 1V19" class="null"/>'
    if e["low"] is not None and e["high"] is not None:
        a, b = x(e["low"]), x(e["high"])
        body += f'<path d="M{a} 10H{b}M{a} 6V14M{b} 6V14" class="whisker"/>'
    body += f'<circle cx="{at}" cy="10" r="3" class="dot"/>'
    if truth is not None:
        t = x(truth)
        body += f'<path d="M{t} 3L{t + 5:.1f} 10L{t} 17L{t - 5:.1f} 10Z" class="truth"/>'
    return _svg(width, height, f"{e['value']:.3f}", body)


def histogram(shifts: Fact) -> Markup:
    """Score shifts of all attacks as bars, of the identity control as an outline; both are shares of their own group."""
    centres: Sequence[float] = shifts["centres"]
    width, height, foot = 560, 190, 26
    step = width / len(centres)
    groups = {}
    for name in ("attacks", "identity"):
        n = max(shifts[name]["n"], 1)
        groups[name] = [c / n for c in shifts[name]["counts"]]
    top = max([*groups["attacks"], *groups["identity"], 1e-9])
    scale = (height - foot - 16) / top
    body = []
    for i, share in enumerate(groups["attacks"]):
        tall = share * scale
        side = "up" if centres[i] > 1e-9 else "down"
        if share:
            where = f'x="{i * step + 1:.1f}" y="{height - foot - tall:.1f}"'
            body.append(f'<rect {where} width="{step - 2:.1f}" height="{tall:.1f}" class="{side}"/>')
            label = f"{100 * share:.0f}%" if share >= 0.005 else ""
            body.append(
                f'<text x="{(i + 0.5) * step:.1f}" y="{height - foot - tall - 4:.1f}" class="mid">{label}</text>'
            )
    for i, share in enumerate(groups["identity"]):
        if share:
            y = height - foot - share * scale
            body.append(f'<path d="M{i * step:.1f} {y:.1f}H{(i + 1) * step:.1f}" class="null"/>')
    body.append(f'<path d="M0 {height - foot}H{width}" class="axis"/>')
    every = max(1, len(centres) // 10)
    for i, c in enumerate(centres):
        if i % every == (len(centres) // 2) % every:
            body.append(
                f'<text x="{(i + 0.5) * step:.1f}" y="{height - 9}" class="mid">{f"{c:+.3g}" if c else "0"}</text>'
            )
    return _svg(width, height, "distribution of score shifts", "".join(body))


def budget(curve: Fact) -> Markup:
    """Share of trials that had succeeded (up) within a number of victim queries (right)."""
    width, height = 240, 60
    points, most = curve["points"], max(curve["budget"], 1)
    if not points:
        return _svg(width, height, "no curve", "")
    path = " ".join(f"{4 + (width - 8) * q / most:.1f},{height - 4 - (height - 8) * s:.1f}" for q, s in points)
    frame = f'<path d="M4 4V{height - 4}H{width - 4}" class="axis"/>'
    return _svg(width, height, "success by queries", f'{frame}<polyline points="{path}" class="curve"/>')


def pareto(points: Sequence[tuple[str, float, float, bool]]) -> Markup:
    """Residual attack success (up) against utility lost (right), both from 0 to 1; the Pareto front is filled.

    Defenses at one place share a label, and labels that would lie on one another are moved apart.
    """
    width, height, left, foot, top = 640, 320, 44, 40, 26
    span, tall = 360, height - foot - top
    body = [f'<path d="M{left} {top}V{height - foot}H{left + span}" class="axis"/>']
    body.append(f'<text x="{left + span / 2}" y="{height - 6}" class="mid">utility lost to honest authors</text>')
    body.append('<text x="4" y="14">attack success left</text>')
    for share in (0.0, 0.5, 1.0):
        x, y = left + span * share, height - foot - tall * share
        body.append(f'<path d="M{x:.1f} {height - foot}v4M{left} {y:.1f}h-4" class="axis"/>')
        body.append(f'<text x="{x:.1f}" y="{height - foot + 16}" class="mid">{100 * share:.0f} %</text>')
        body.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{100 * share:.0f} %</text>')
    places: dict[tuple[int, int], list[tuple[str, bool]]] = {}
    for name, lost, remains, front in points:
        x, y = (min(max(v, 0.0), 1.0) for v in (lost, remains))
        places.setdefault((round(left + span * x), round(height - foot - tall * y)), []).append((name[:40], front))
    taken: list[tuple[float, float, float]] = []
    for (x, y), here in sorted(places.items(), key=lambda p: (p[0][1], p[0][0])):
        label = ", ".join(n for n, _ in here)[:120]
        at, wide = y - 5.0, 7.0 * len(label)
        while any(abs(at - b) < 12 and x < a + w and a < x + wide for a, b, w in taken):
            at += 1.0
        taken.append((x, at, wide))
        kind = "dot" if any(front for _, front in here) else "null"
        body.append(f'<circle cx="{x}" cy="{y}" r="4" class="{kind}"/>')
        body.append(f'<text x="{x + 8}" y="{at:.1f}">{escape(label)}</text>')
    return _svg(width, height, "defenses by attack success left and utility lost", "".join(body))
