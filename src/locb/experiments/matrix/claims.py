"""What ELOC sets out to do, judged by the matrix."""

from __future__ import annotations

from collections.abc import Sequence

from locb.evaluation.findings import Claim, Criterion, Measurement
from locb.experiments.matrix.standings import WorldResult, geometric_mean
from locb.experiments.scenarios import DEVELOPMENT, JUDGING

CONTENDER = "eloc"
MOST_ABOVE = 1.05  # of the best baseline, plus the interval
MOST_ON_AVERAGE = 0.75
MOST_WHERE_GROUPS_ARE_PLAIN = 0.65
PLAIN = ("bernoulli-100", "bernoulli-500", "zipf-300")
WHERE = "not in the paper: what ELOC sets out to do"
NEVER = "never worse than the best baseline by more than 5% plus its interval"


def claims(results: Sequence[WorldResult], section: str, evidence: str) -> list[Claim]:
    """The aims, for the judging worlds first."""
    made: list[Claim] = []
    for role in (JUDGING, DEVELOPMENT):
        here = [result for result in results if result.world.role == role]
        if not here:
            continue
        on = _counted(here, f"{role} world")
        aims = {f"ELOC is {NEVER}.": [_never_worse(here)]}
        grouped = [result for result in here if result.world.groups]
        if grouped:
            says = f"Where there are groups, ELOC's regret is at most {MOST_ON_AVERAGE:g} of the best baseline's."
            average = geometric_mean(result.ratio(CONTENDER) for result in grouped)
            aims[says] = [_at_most(f"geometric mean over {_counted(grouped, 'world')}", average, MOST_ON_AVERAGE)]
        plain = [result for result in here if result.world.name.removeprefix("dev-") in PLAIN]
        if plain:
            limit = MOST_WHERE_GROUPS_ARE_PLAIN
            aims[f"ELOC's regret is at most {limit:g} of the best baseline's on {_listed(plain)}."] = [
                _at_most(result.world.name, result.ratio(CONTENDER), limit) for result in plain
            ]
        made += [Claim(section, on, says, WHERE, parts, evidence=evidence) for says, parts in aims.items()]
    return made


def loses(result: WorldResult) -> bool:
    """Whether it is worse than the best baseline by more than is allowed. One repeat has no interval to add."""
    found = result.ratio(CONTENDER)
    around = 0.0 if found.margin != found.margin else found.margin
    return found.mean - around > MOST_ABOVE


def told(ratio: Measurement) -> str:
    """A ratio with its interval."""
    return f"{ratio.mean:.3f}" + ("" if ratio.margin != ratio.margin else f" ± {ratio.margin:.3f}")


def _never_worse(results: Sequence[WorldResult]) -> Criterion:
    worse = [result for result in results if loses(result)]
    part = Criterion.always("worlds in which that is so", len(results) - len(worse), len(results))
    where = ", ".join(f"{result.world.name} ({told(result.ratio(CONTENDER))})" for result in worse)
    return Criterion(part.statement, part.difference, f"{part.detail}{f'; worse in {where}' if where else ''}")


def _at_most(says: str, found: Measurement, limit: float) -> Criterion:
    return Criterion(
        says, Measurement(limit - found.mean, found.margin), f"{says}: {told(found)} where {limit:g} is the aim"
    )


def _counted(results: Sequence[WorldResult], noun: str) -> str:
    return f"{len(results)} {noun}{'' if len(results) == 1 else 's'}"


def _listed(results: Sequence[WorldResult]) -> str:
    return ", ".join(result.world.name for result in results)
