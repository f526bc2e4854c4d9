"""Your own cases: any CSV or JSONL through a column mapping; bad rows are told and the rest goes on."""

from pathlib import Path

import robustjudge as rj
from robustjudge.datasets.columns import Columns

Path("tickets.csv").write_text(
    "ticket,question,draft,approved\n"
    "17,How do I reset the router?,Pull it out of the wall.,Hold the reset key for ten seconds.\n"
    "18,Which port is for the modem?,,The yellow one.\n"
    "19,Does it have a fan?,It has two fans.,No; it is cooled without one.\n",
    encoding="utf-8",
)
columns = Columns(id="ticket", task="question", response="draft", reference="approved")
loaded = rj.load_cases("tickets.csv", columns=columns, on_bad=lambda row: print("set aside:", row)).result()
print(f"{len(loaded.cases)} cases, {len(loaded.bad)} rows set aside")

plan = rj.Plan(
    cases=lambda: iter(loaded.cases),
    judges=(("mine", rj.Prompted("scripted/gameable", rj.template("robustjudge"))),),
    protocols=(rj.Pairwise(),),
    attacks=(rj.attack("identity"), rj.attack("H6")),
)
print(f"{len(rj.run(plan).table())} trials")
