"""Your judge prompt, unchanged: slots named by you, your reply form, linted and attacked as it is."""

import robustjudge as rj

template = rj.judge_prompt(
    {
        "messages": [
            {"role": "system", "text": "You grade answers of a help desk for correctness."},
            {
                "role": "user",
                "text": "Question: {{ question }}\nAnswer: {{ answer }}\n\n"
                'Reply with one JSON object: {"reason": "...", "score": a whole number from 1 to 5}',
            },
        ],
        "slots": {"question": "task", "answer": "response"},
        "scale": {"min": 1, "max": 5},
        "reply": {"form": "json", "path": "score"},
    }
)
for finding in rj.lint(template):
    print(f"{finding.severity}: line {finding.line}: {finding.message} [{finding.rule}]")

plan = rj.Plan(
    cases=lambda: rj.builtin_cases("knowledge", 4),
    judges=(("help-desk", rj.Prompted("scripted/gameable", template)),),
    protocols=(rj.Pointwise(),),
    attacks=tuple(rj.attack(name) for name in ("identity", "H1", "E7")),
)
table = rj.run(plan).table()
print(
    f"{len(table)} trials, {int(table['fooled'].sum())} times the reader took a verdict that a strict one does not take"
)
