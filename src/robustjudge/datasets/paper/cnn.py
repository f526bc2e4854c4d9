"""T2 summarization: CNN/DailyMail articles with their highlights (Hermann et al., 2015; See et al., 2017)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from robustjudge import spec
from robustjudge.datasets.base import BadRow, Row, case_id
from robustjudge.datasets.paper.common import draft, rows

FILE = "summarization_task/cnn_dailymail.json"


@spec.register("cnn_dailymail")
@dataclass(frozen=True)
class CnnDailyMail:
    """One case per article.  The reference is the highlights in normal spacing; ``meta`` keeps them raw,
    since their style (one point per line, spaces before full stops) could itself move a judge."""

    root: str

    def files(self) -> tuple[str, ...]:
        """The files read, as named inside the data folder."""
        return (FILE,)

    def rows(self) -> Iterator[Row]:
        for record in rows(self.root, FILE, "id", ("article", "highlights")):
            if isinstance(record, BadRow):
                yield record
                continue
            fields = record[1]
            yield draft(
                id=case_id(FILE, str(fields["id"])),
                task=f"Summarize this article.\n\n{fields['article']}",
                response="",
                references=(plain(fields["highlights"]),),
                kind="summarization",
                dataset="cnn_dailymail",
                language="en",
                cluster="",
                meta={"article_length": str(len(fields["article"])), "raw_reference": fields["highlights"]},
                source=f"CNN/DailyMail 3.0.0, {fields['id']}",
                licence="not stated (unverified)",
            )


def plain(highlights: str) -> str:
    """Highlights as running text: no space before an end mark, points joined by spaces."""
    points = (line.strip() for line in highlights.splitlines())
    return re.sub(r"\s+([.,;:!?])(?=\s|$)", r"\1", " ".join(p for p in points if p))
