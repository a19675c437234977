"""One workload in development, staging and production: what differs, why, and what it costs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from rightsizer.advice.answer import Action, AdviceReason, AdvisedOption, Cost, EnvironmentVariant, Hosting, Purchase
from rightsizer.advice.rules import Rule
from rightsizer.advice.workload import WORKING_HOURS, Goal, Objectives, Traffic, Workload
from rightsizer.domain.environment import Environment
from rightsizer.domain.price import CENT

PRODUCTION_INSTANCES = 2
CALLS_IN_DEVELOPMENT = 1000.0
"""Requests a month that a development endpoint is priced for where it is billed by the request; an assumption."""
PER_REQUEST = (Hosting.SERVERLESS, Hosting.LAMBDA)

type OptionSearch = Callable[[Workload], Sequence[AdvisedOption]]
"""The options of a workload, best first."""


def environment_variants(workload: Workload, answer: OptionSearch) -> tuple[EnvironmentVariant, ...]:
    """The three variants of a service, development first; none where nothing holds the model."""
    described = _in(workload, Environment.PRODUCTION)
    first = next(iter(answer(described)), None)
    if first is None:
        return ()
    production = EnvironmentVariant(
        Environment.PRODUCTION.value,
        in_production(first),
        tuple(_why_production(first)),
        _production_tags(workload, first),
        {"automatic": False, "objective": workload.objectives.p95_ms or "as-today"},
    )
    staging = EnvironmentVariant(
        Environment.STAGING.value,
        in_staging(first),
        tuple(_why_staging(first)),
        _staging_tags(workload),
        {"automatic": False},
    )
    return (*_development(workload, answer, first), staging, production)


def policy_of(variants: Sequence[EnvironmentVariant]) -> Mapping[str, Any]:
    """The policy document that these environments want.

    Staging and production ask a person whatever a tag says, production keeps its objective, and in development a change
    may begin at any hour.
    """
    return {"version": 1, "environments": {variant.environment: dict(variant.policy) for variant in variants}}


def in_production(option: AdvisedOption) -> AdvisedOption:
    """The option with the second instance that production wants of an endpoint that always runs."""
    if option.hosting is not Hosting.REALTIME or option.count >= PRODUCTION_INSTANCES:
        return option
    return replace(option, count=PRODUCTION_INSTANCES, cost=_of_count(option, PRODUCTION_INSTANCES))


def in_staging(option: AdvisedOption) -> AdvisedOption:
    """The option in its smallest count and in working hours; the same kind, type and image."""
    if option.hosting in PER_REQUEST:
        return option
    cost = _in_hours(_of_count(option, 1), WORKING_HOURS)
    return replace(
        option,
        count=1,
        purchase=Purchase.SCHEDULE,
        action=Action.PROPOSE,
        cost=cost,
        reasons=(*_why_staging(option), *(reason for reason in option.reasons if reason.source != Rule.PRODUCTION_TWO)),
        effort="; ".join(filter(None, (option.effort, "delete it between tests"))),
    )


def _development(workload: Workload, answer: OptionSearch, production: AdvisedOption) -> Iterator[EnvironmentVariant]:
    """The smallest endpoint that runs the model, without the load and the latency of production."""
    goal = workload.objectives.goal if workload.objectives.goal is Goal.FLEXIBILITY else Goal.BALANCED
    described = replace(
        _in(workload, Environment.DEVELOPMENT),
        traffic=Traffic(requests_per_month=CALLS_IN_DEVELOPMENT),
        objectives=Objectives(goal=goal),
        ask=(),
        compare=(),
    )
    options = answer(described)
    small = next((option for option in options if option.hosting is Hosting.SERVERLESS), None)
    if production.hosting is Hosting.ASYNC:
        small = next((option for option in options if option.hosting is Hosting.ASYNC), small)
    small = small or next((option for option in options if option.purchase is Purchase.SCHEDULE), None)
    if small is not None:
        waits = {"rightsizer:cold-start-ok": "true"} if small.hosting is Hosting.REALTIME else {}
        tags = {"rightsizer:mode": "propose", **waits}
        why = tuple(_why_development(small, production))
        yield EnvironmentVariant(Environment.DEVELOPMENT.value, small, why, tags, {"window": "always"})


def _why_development(small: AdvisedOption, production: AdvisedOption) -> Iterator[AdviceReason]:
    if small.hosting is Hosting.SERVERLESS:
        text = f"nothing is billed between calls; priced for {CALLS_IN_DEVELOPMENT:,.0f} calls a month"
        yield AdviceReason(text, f"{Rule.DEVELOPMENT_SMALL}, {Rule.SERVERLESS_LIMITS}")
    elif small.hosting is Hosting.ASYNC:
        yield AdviceReason("no instance between calls; the first one waits for a start", Rule.SCALE_TO_ZERO)
    else:
        cited = f"{Rule.DEVELOPMENT_SMALL}, {Rule.WORKING_HOURS}"
        yield AdviceReason("one instance, in working hours: 176 of 730 hours", cited)
    if small.instance_type != production.instance_type:
        text = "the load and the latency of production do not count here, so what is measured here says nothing of them"
        yield AdviceReason(text, Rule.DEVELOPMENT_SMALL)
    if small.hosting is Hosting.REALTIME:
        text = "callers who develop can wait for a start, so the endpoint may scale to zero"
        yield AdviceReason(text, Rule.COMPONENTS_TO_ZERO)


def _why_staging(production: AdvisedOption) -> Iterator[AdviceReason]:
    if production.hosting in PER_REQUEST:
        yield AdviceReason(
            "the same kind and memory as production; it is billed by its own calls only", Rule.STAGING_MIRRORS
        )
        return
    text = "the same kind, type and image as production, so that a deployment and a latency prove something"
    yield AdviceReason(text, Rule.STAGING_MIRRORS)
    yield AdviceReason(
        "one instance, in the hours of tests: requests an instance are measured here", Rule.STAGING_MIRRORS
    )


def _why_production(production: AdvisedOption) -> Iterator[AdviceReason]:
    if production.hosting is Hosting.REALTIME:
        yield AdviceReason("at least two instances, in two zones", Rule.PRODUCTION_TWO)
        yield AdviceReason("updates go through a canary that alarms roll back", Rule.GUARDRAIL)
    elif production.hosting is Hosting.ASYNC:
        yield AdviceReason(
            "the queue keeps requests while an instance is replaced, so one may be enough", Rule.ASYNC_LIMITS
        )
    text = "a person approves each proposal until the objective is tagged and trusted"
    yield AdviceReason(text, Rule.NEW_ENDPOINTS_ASK)


def _production_tags(workload: Workload, option: AdvisedOption) -> Mapping[str, str]:
    """A person decides, and the fleet never shrinks below two instances."""
    least = {"rightsizer:min-instances": str(PRODUCTION_INSTANCES)} if option.hosting is Hosting.REALTIME else {}
    return {"rightsizer:mode": "propose", **_objective(workload), **least}


def _staging_tags(workload: Workload) -> Mapping[str, str]:
    """Reports only: the load of tests says nothing of the size that the endpoint needs."""
    return {"rightsizer:mode": "report", **_objective(workload)}


def _objective(workload: Workload) -> Mapping[str, str]:
    limit = workload.objectives.p95_ms
    return {} if limit is None else {"rightsizer:p95-ms": f"{limit:g}"}


def _in(workload: Workload, environment: Environment) -> Workload:
    return replace(workload, constraints=replace(workload.constraints, environment=environment))


def _of_count(option: AdvisedOption, count: int) -> Cost:
    """The cost of so many instances that run all hours."""
    cost = option.cost
    if cost.usd_per_hour is None:
        return cost
    hourly = cost.usd_per_hour / option.count * count
    monthly = None if cost.usd_per_month is None else (cost.usd_per_month / option.count * count).quantize(CENT)
    return replace(cost, usd_per_hour=hourly, usd_per_month=monthly, usd_per_1000_requests=None)


def _in_hours(cost: Cost, hours: float) -> Cost:
    if cost.usd_per_hour is None:
        return cost
    monthly = (cost.usd_per_hour * Decimal(str(hours))).quantize(CENT)
    return replace(cost, usd_per_month=monthly, usd_per_1000_requests=None)
