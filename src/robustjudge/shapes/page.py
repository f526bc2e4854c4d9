"""Shapes as Markdown and as one self-contained page; cells and labels are data, never markup."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from robustjudge.reports.markdown import plain, table
from robustjudge.reports.texts import visible
from robustjudge.shapes.base import Curve, Shape

STYLE = """:root{color-scheme:light dark;--paper:#fff;--ink:#1b2330;--dim:#667085;--line:#dfe3ea}
@media (prefers-color-scheme:dark){:root{--paper:#12161d;--ink:#e6e9ef;--dim:#98a2b3;--line:#303846}}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1180px;margin:0 auto;padding:24px}h1{font-size:24px}h2{font-size:19px;margin-top:36px}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:13.5px;font-variant-numeric:tabular-nums}
th{text-align:left;font-size:12px;color:var(--dim)}th,td{padding:5px 9px;border-bottom:1px solid var(--line);vertical-align:top}
tr.theirs td{color:var(--dim)}.dim{color:var(--dim);font-size:13px}li{margin:3px 0}svg{max-width:100%}
svg text{fill:var(--dim);font:11px system-ui,sans-serif}code{font-family:ui-monospace,monospace}"""

COLOURS = ("#2f5fd0", "#d9480f", "#067647", "#8e44ad", "#b54708", "#0e7490", "#be185d", "#4d7c0f")


def markdown(title: str, lead: Sequence[str], shapes: Sequence[Shape]) -> str:
    """The document in Markdown."""
    out = [f"# {plain(title)}", "", *(f"- {plain(x)}" for x in lead), ""]
    for s in shapes:
        out += [f"## {plain(s.title)}", ""]
        out += table([plain(h) for h in s.head], [[plain(c) or " " for c in row] for row in s.rows])
        if s.agreements:
            out += ["Compared with the printed figures:", "", *(f"- {plain(a)}" for a in s.agreements), ""]
        out += [*(f"> {plain(n)}" for n in s.notes), ""]
    return "\n".join(out).rstrip() + "\n"


def text(title: str, lead: Sequence[str], shapes: Sequence[Shape]) -> str:
    """The document for a terminal: one cell a line would be too long, so each row is a line of cells between bars."""
    out = [title, *lead, ""]
    for s in shapes:
        out += [s.title, " | ".join(s.head)]
        out += [" | ".join(row) for row in s.rows]
        out += [*s.agreements, ""]
    return visible("\n".join(out))


def html(title: str, lead: Sequence[str], shapes: Sequence[Shape]) -> str:
    """The document as a page that loads and runs nothing."""
    body = [f"<h1>{safe(title)}</h1>", "<ul>", *(f"<li>{safe(x)}</li>" for x in lead), "</ul>"]
    for s in shapes:
        body.append(f"<h2>{safe(s.title)}</h2>")
        for name in dict.fromkeys(c.panel for c in s.curves):
            body.append(f"<h3>{safe(name)}</h3>")
            body.append(str(drawing([c for c in s.curves if c.panel == name])))
        body.append('<div class="scroll"><table><thead><tr>' + "".join(f"<th>{safe(h)}</th>" for h in s.head))
        body.append("</tr></thead><tbody>")
        for row in s.rows:
            mark = ' class="theirs"' if any(c.startswith("published") for c in row[:2]) else ""
            body.append(f"<tr{mark}>" + "".join(f"<td>{safe(c)}</td>" for c in row) + "</tr>")
        body.append("</tbody></table></div>")
        if s.agreements:
            body.append("<p>Compared with the printed figures:</p><ul>")
            body += [f"<li>{safe(a)}</li>" for a in s.agreements] + ["</ul>"]
        body += [f'<p class="dim">{safe(n)}</p>' for n in s.notes]
    return document(title, "\n".join(body))


def document(title: str, body: str) -> str:
    """A self-contained page around a body that is safe already."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">'
        f"<title>{safe(title)}</title><style>{STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def safe(value: str) -> Markup:
    return escape(visible(value))


def drawing(curves: Sequence[Curve], width: int = 640, height: int = 300) -> Markup:
    """Lines with interval whiskers over a common x axis, and a legend; labels that would run into one another are left
    out, and several curves stand beside each other, so that each has its whiskers seen."""
    points = [p for c in curves for p in c.points]
    xs = sorted({p[0] for p in points})
    top = max(max(p[3], p[1]) for p in points) or 1.0
    low = min(0.0, *(p[2] for p in points))
    left, foot, head, right = 44, 28, 12, 24

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - xs[0]) / ((xs[-1] - xs[0]) or 1.0)
        up = (y - low) / ((top - low) or 1.0)
        return round(left + across * (width - left - right), 1), round(height - foot - up * (height - foot - head), 1)

    body = [
        f'<path d="M{left} {head}V{height - foot}H{width - right}" stroke="currentColor" fill="none" opacity=".4"/>'
    ]
    free = float(width)
    for x in reversed(xs):
        place, wide = at(x, low)[0], 7 * len(f"{x:g}") + 6
        if place + wide / 2 <= free:
            free = place - wide / 2
            body.append(f'<text x="{place}" y="{height - 10}" text-anchor="middle">{x:g}</text>')
    for share in (0.0, 0.5, 1.0):
        y = low + share * (top - low)
        body.append(f'<text x="{left - 6}" y="{at(xs[0], y)[1] + 4}" text-anchor="end">{y:.3g}</text>')
    for i, c in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        beside = 0 if c.dashed else 3 * i
        path = " ".join(f"{a + beside:.1f},{b}" for a, b in (at(p[0], p[1]) for p in c.points))
        dash = ' stroke-dasharray="5 4"' if c.dashed else ""
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        if not c.dashed:
            for x, y, a, b in c.points:
                (px, py), (_, pa), (_, pb) = at(x, y), at(x, a), at(x, b)
                body.append(f'<path d="M{px + beside:.1f} {pa}V{pb}" stroke="{colour}" opacity=".5"/>')
                body.append(f'<circle cx="{px + beside:.1f}" cy="{py}" r="3" fill="{colour}"/>')
    legend = "".join(
        f'<span style="color:{COLOURS[i % len(COLOURS)]}">■</span> {safe(c.label)} &nbsp; '
        for i, c in enumerate(curves)
    )
    svg = f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="curves">'
    return Markup(f'{svg}{"".join(body)}</svg><p class="dim">{legend}</p>')
