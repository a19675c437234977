"""Environments of endpoints: which one the tags name, and what it changes in the thresholds of a decision.

An owner of a development endpoint expects that it costs little and that nobody has to repair it afterwards. So what
rightsizer takes by itself there is what it can take back by itself. A figure of the owner's own (`rightsizer:p95-ms`,
`rightsizer:min-instances`) wins over this table.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from rightsizer.domain.endpoint import Endpoint, tracked_p95_s
from rightsizer.domain.option import Risk
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import one_line

KEYS = ("environment", "env", "stage")
"""Keys of the tag, in lower case: the only place that knows them."""


class Environment(StrEnum):
    """Where a workload stands."""

    DEVELOPMENT = "development"
    STAGING = "staging"
    PRODUCTION = "production"


WORDS: Mapping[str, Environment] = MappingProxyType(
    dict.fromkeys(("development", "dev", "test", "testing", "qa", "sandbox"), Environment.DEVELOPMENT)
    | dict.fromkeys(("staging", "stage", "preprod", "pre-prod", "preproduction"), Environment.STAGING)
    | dict.fromkeys(("production", "prod"), Environment.PRODUCTION)
)
"""Values of the tag, in lower case, as people spell them; any other one counts as production."""
LEAST_STRICT = (Environment.DEVELOPMENT, Environment.STAGING, Environment.PRODUCTION)


@dataclass(frozen=True, slots=True)
class EnvironmentRules:
    """Figures that an environment sets in place of the account's policy; None leaves the account's figure."""

    lone_instance: Risk | None = None
    """Availability risk of one instance in place of two or more."""
    growth: float | None = None
    """Room for growth, as a share of the load seen."""
    risk_apply: int | None = None
    """Performance risk that automatic mode takes."""
    confidence_smaller: float | None = None
    """Days' worth of evidence that another type takes."""


RULES: Mapping[Environment, EnvironmentRules] = MappingProxyType(
    {
        # One instance: while a failed one is replaced, a developer waits some minutes and no customer does.
        # Growth: half of production's. Callers are as many as the team is, and the team notices when it waits.
        # Risk 2: one change in twenty at most is taken back, by its alarms or its proof, without a person.
        # Three days: more than a weekend, so that a day of work is among them. Production waits for a whole week.
        Environment.DEVELOPMENT: EnvironmentRules(Risk.VERY_LOW, 0.10, 2, 3.0),
        # Tests measure staging: its headroom, latency and evidence are those of production. A second zone is not.
        Environment.STAGING: EnvironmentRules(Risk.VERY_LOW),
        Environment.PRODUCTION: EnvironmentRules(),
    }
)
"""What each environment changes. The figures that a declared latency depends on give way to it (`policy_for`)."""


@dataclass(frozen=True, slots=True)
class EnvironmentReading:
    """The environment of an endpoint, where it was read, and what it changed in the decision."""

    environment: Environment
    source: str
    """The tag that decided, such as ``tag environment=dev``, or why there is none."""
    effects: tuple[str, ...] = ()
    """What differs from the account's policy, a sentence each; empty in production."""


def environment_of_word(word: str) -> Environment | None:
    """The environment that people mean by the word, in any case; None where it is not known."""
    return WORDS.get(word.strip().lower())


def environment_of_tags(tags: Mapping[str, str]) -> tuple[Environment, str]:
    """The environment that the tags name, and the tag that decided; of several the strictest. Total.

    An unknown value counts as production, and so does no tag.
    """
    found = [(key, value) for key, value in sorted(tags.items()) if key.lower() in KEYS]
    if not found:
        return Environment.PRODUCTION, f"no tag {', '.join(KEYS[:-1])} or {KEYS[-1]}"
    named = [(environment_of_word(value) or Environment.PRODUCTION, key, value) for key, value in found]
    environment, key, value = max(named, key=lambda each: LEAST_STRICT.index(each[0]))
    source = f"tag {key}={one_line(value.strip(), 40)}"
    if environment_of_word(value) is None:
        return environment, f"{source}, which is none of {', '.join(WORDS)}"
    others = [f"{k}={one_line(v.strip(), 40)}" for other, k, v in named if other is not environment]
    return environment, f"{source}, stricter than {', '.join(others)}" if others else source


def environment_of(endpoint: Endpoint) -> tuple[Environment, str]:
    """The environment of the endpoint and where it was said: the policy document, else its tags."""
    if endpoint.environment:
        return Environment(endpoint.environment), endpoint.environment_source
    return environment_of_tags(endpoint.tags)


def policy_for(endpoint: Endpoint, policy: Policy) -> Policy:
    """The policy as it holds for the endpoint in its environment: of each figure the more permissive one.

    Where its owner declared a latency, by tag or by target tracking, growth, risk and evidence stay the account's.
    """
    rules = RULES[environment_of(endpoint)[0]]
    if rules == EnvironmentRules():
        return policy
    alone = policy.lone_instance if rules.lone_instance is None else min(policy.lone_instance, rules.lone_instance)
    if endpoint.objective.p95_s is not None or tracked_p95_s(endpoint.scaling) is not None:
        return replace(policy, lone_instance=alone)
    return replace(
        policy,
        lone_instance=alone,
        down_with_growth=_lesser(policy.down_with_growth, rules.growth),
        risk_apply=policy.risk_apply if rules.risk_apply is None else max(policy.risk_apply, rules.risk_apply),
        confidence_smaller=_lesser(policy.confidence_smaller, rules.confidence_smaller),
    )


def read_environment(endpoint: Endpoint, policy: Policy) -> EnvironmentReading:
    """The environment of the endpoint with what it changes in the account's `policy`."""
    environment, source = environment_of(endpoint)
    if endpoint.tags_unread is not None and not endpoint.environment:
        source = "its tags could not be read"
    return EnvironmentReading(environment, source, tuple(_effects(endpoint, policy, policy_for(endpoint, policy))))


def _effects(endpoint: Endpoint, account: Policy, here: Policy) -> Iterator[str]:
    if here.lone_instance != account.lone_instance and endpoint.objective.min_instances is None:
        yield "one instance is enough: no second Availability Zone is kept"
    if here.down_with_growth != account.down_with_growth:
        yield f"room for {100 * here.down_with_growth:g} % more load, not {100 * account.down_with_growth:g} %"
    if here.risk_apply != account.risk_apply:
        yield f"automatic mode takes a performance risk of {here.risk_apply} of 4, not {account.risk_apply}"
    if here.confidence_smaller != account.confidence_smaller:
        days = f"{here.confidence_smaller:g} days' worth of evidence"
        yield f"{days} are enough for another type by itself, not {account.confidence_smaller:g}"


def _lesser(ours: float, theirs: float | None) -> float:
    return ours if theirs is None else min(ours, theirs)
