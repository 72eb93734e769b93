"""An explanation of a fetch in words, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from colmem.explanation import ExplainedHit, Explanation, WhyNot


def hit_lines(hit: ExplainedHit) -> Iterator[str]:
    """What a hit's score is made of."""
    yield " + ".join(f"{name} {_number(part)}" for name, part in hit.parts.items())
    facts = []
    if hit.terms:
        facts.append(f"words {_pairs(dict(sorted(hit.terms.items(), key=lambda t: -t[1])))}")
    if hit.cosine is not None:
        facts.append(f"cosine {_number(hit.cosine)}")
    if hit.maxsim is not None:
        facts.append(f"maxsim {_number(hit.maxsim)}")
    places = {name: "-" if place is None else str(place) for name, place in hit.ranks.items()}
    facts.append("place " + ", ".join(f"{name} {place}" for name, place in places.items()))
    yield "; ".join(facts)
    if hit.span is not None:
        yield f"best passage: characters {hit.span.start} to {hit.span.end}"


def summary_lines(explanation: Explanation) -> Iterator[str]:
    """What holds for the whole ranking."""
    plan = explanation.filter
    if explanation.terms:
        yield f"searched for {', '.join(explanation.terms)}"
    if explanation.weights:
        yield f"weights {_pairs(explanation.weights)}"
    admitted = f"filter admits {plan.admitted:,} of {plan.within:,}"
    if plan.clauses:
        clauses = ", ".join(f"{name} {count:,}" for name, count in plan.clauses.items())
        admitted += f" (each clause alone: {clauses})"
    yield admitted
    yield "ms: " + ", ".join(f"{name} {ms:.2f}" for name, ms in explanation.stages_ms.items())


def why_not_lines(why_not: WhyNot) -> Iterator[str]:
    """Why an item did not come."""
    yield f"{why_not.id} did not come: {why_not.detail}"
    for refusal in why_not.refused_by:
        yield f"  {refusal.clause} asks for {refusal.wanted}, the item has {refusal.held}"
    if why_not.hit is not None:
        yield from (f"  {line}" for line in hit_lines(why_not.hit))


def _pairs(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {_number(value)}" for name, value in values.items())


def _number(value: float) -> str:
    return f"{value:.3f}"
