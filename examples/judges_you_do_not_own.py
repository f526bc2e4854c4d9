"""A judge that another framework owns: wrap its call in one function of a slate, and attack it as a service."""

import robustjudge as rj


class Metric:
    """Stands in for a metric object of an evaluation framework: ``measure`` returns a score in [0, 1]."""

    def measure(self, question: str, answer: str) -> float:
        score = 0.9 if "please" in answer.lower() else 0.3
        return score + 0.1 * question.endswith("?")


metric = Metric()


def grade(slate: rj.Slate) -> dict[str, object]:
    """What the service answers: any JSON-able mapping; ``Service`` says where the score stands."""
    return {"score": metric.measure(slate.task, slate.candidates[0]), "reason": "from the framework"}


service = rj.Service("house-metric", low=0.0, high=1.0, overall="score", rationale="reason")
plan = rj.Plan(
    cases=lambda: rj.builtin_cases("knowledge"),
    judges=(("house-metric", service),),
    protocols=(rj.Pointwise(),),
    attacks=tuple(rj.attack(name) for name in ("identity", "H1", "H5")),
)
run = rj.run(plan, rj.Options(services={"house-metric": rj.open_service("house-metric", grade)}))
table = run.table()
for name in table.distinct("attack"):
    print(name, table.only(attack=name)["attacked_score"].mean().round(3))
