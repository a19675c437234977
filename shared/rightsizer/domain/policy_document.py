"""The policy document: who may decide what, and how far changes go, for each environment and each owner.

It is laid over what the stack's parameters and the defaults say. For each key the owner's value comes first, then that
of the environment, then that of `defaults`; a tag of the endpoint itself comes before them all. What cannot be
understood loosens nothing: it is named in `problems`, and its key falls back as `policy_key` says.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from rightsizer.domain.approvers import SHORT, SLACK, WHOLE, Approvers, is_match
from rightsizer.domain.endpoint import Endpoint, Mode
from rightsizer.domain.environment import Environment, environment_of, environment_of_tags
from rightsizer.domain.policy import ChangeLimits, Policy
from rightsizer.domain.policy_key import (
    APPROVERS,
    AUTOMATIC,
    CHANNEL,
    FOUR_EYES,
    KEYS,
    MINIMUM_SAVING,
    OBJECTIVE,
    Fallback,
)

DEFAULTS = "defaults"
ENVIRONMENTS, OWNERS, ASSIGN = "environments", "owners", "assign"


@dataclass(frozen=True, slots=True)
class Section:
    """Values of `defaults`, of one environment or of one owner."""

    place: str
    """Where it stands in the document, such as ``environments.production``."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Values that could be understood, by key, as `ChangeLimits` and `Policy` take them."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Keys whose value could not be understood, each with the sentence that names it."""
    held: tuple[str, ...] = ()
    """What else could not be understood and may have been a limit: no change begins where the section counts."""
    lost: str = ""
    """Why the whole section cannot be understood: each of its keys falls back."""

    def problem(self, key: str) -> str:
        """The sentence about a key that falls back; empty where it does not."""
        return self.lost or self.broken.get(key, "")

    def says(self, key: str) -> bool:
        """Whether the section decides on the key, by a value or because its value could not be understood."""
        return key in self.values or bool(self.problem(key))


@dataclass(frozen=True, slots=True)
class PolicyOwner:
    """An owner, as the tag `owner` of their endpoints names them."""

    section: Section
    people: frozenset[str] = frozenset()
    """Entries as of a list of approvers: the persons who own, for the rule of four eyes."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A rule that says which environment an endpoint belongs to. Each `*` stands for any signs."""

    environment: Environment
    place: str
    """Where it stands, such as ``assign[0]``."""
    endpoints: str = "*"
    """The endpoint's name."""
    tag: str = ""
    """Key of a tag that it must have; empty: none."""
    value: str = "*"
    """The tag's value."""

    def applies_to(self, name: str, tags: Mapping[str, str]) -> bool:
        """Whether the rule is about the endpoint. Upper and lower case do not differ."""
        if not is_match(self.endpoints.casefold(), name.casefold()):
            return False
        found = (value for key, value in tags.items() if key.casefold() == self.tag.casefold())
        return not self.tag or any(is_match(self.value.casefold(), value.strip().casefold()) for value in found)


@dataclass(frozen=True, slots=True)
class Subject:
    """An endpoint by its environment and its owner, for which values are asked."""

    environment: Environment | None = None
    """None: what no environment is known of, such as an Auto Scaling group."""
    owner: str = ""
    """The tag `owner`, empty where nobody is named."""


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """The whole document as it could be understood; empty where a stack has none."""

    defaults: Section = Section(DEFAULTS)
    environments: Mapping[Environment, Section] = field(default_factory=dict)
    owners: Mapping[str, PolicyOwner] = field(default_factory=dict)
    """By the tag's value in lower case (`str.casefold`)."""
    assignments: tuple[Assignment, ...] = ()
    assignments_broken: bool = False
    """One rule or more cannot be understood: whatever no other rule names counts as production."""
    problems: tuple[str, ...] = ()
    """Everything that could not be understood, a sentence each with its place, what is allowed, and what holds now."""

    def __bool__(self) -> bool:
        return self != PolicyDocument()

    @property
    def asks_for_subject(self) -> bool:
        """Whether values differ between endpoints, so that whoever asks for one has to know its tags."""
        return bool(self.environments or self.owners)

    def sections(self, subject: Subject) -> Iterator[Section]:
        """Sections that count for the subject, the most specific first."""
        owner = self.owners.get(subject.owner.strip().casefold()) if subject.owner else None
        if owner is not None:
            yield owner.section
        if subject.environment is not None and subject.environment in self.environments:
            yield self.environments[subject.environment]
        yield self.defaults

    def deciding_section(self, key: str, subject: Subject) -> Section | None:
        """The section whose value of the key counts, or which should have one; None where none says anything."""
        return next((section for section in self.sections(subject) if section.says(key)), None)

    def environment_for(self, name: str, tags: Mapping[str, str]) -> tuple[Environment, str]:
        """The environment of an endpoint and why: the first rule that names it, else its tags."""
        for rule in self.assignments:
            if rule.applies_to(name, tags):
                return rule.environment, f"policy document, {rule.place}"
        if self.assignments_broken:
            return Environment.PRODUCTION, "a rule of the policy document cannot be understood, and no other names it"
        return environment_of_tags(tags)

    def subject(self, name: str, tags: Mapping[str, str], owner: str) -> Subject:
        """The endpoint of that name and those tags, as values are asked for."""
        return Subject(self.environment_for(name, tags)[0], owner)


@dataclass(frozen=True, slots=True)
class EffectiveValue:
    """The value of one key where the document counts, and where it was said."""

    value: Any
    place: str
    problem: str = ""
    """Why it is a fallback; empty where it was said."""


def find_value(document: PolicyDocument, key: str, subject: Subject) -> EffectiveValue | None:
    """The value that the document gives the key for the subject; None where it says nothing about the key.

    Where the value cannot be understood it is the safest one, or None where only the fallback holds.
    """
    section = document.deciding_section(key, subject)
    if section is None:
        return None
    place, problem = f"{section.place}.{key}", section.problem(key)
    if not problem:
        return EffectiveValue(section.values[key], place)
    if section.lost or key != APPROVERS:
        return EffectiveValue(SAFEST.get(key), place, problem)
    return EffectiveValue(section.values.get(key, ()), place, problem)


SAFEST: Mapping[str, Any] = MappingProxyType(
    {
        APPROVERS: (),
        FOUR_EYES: True,
        AUTOMATIC: False,
        "dimensions": frozenset(),
        "tests_per_month": 0,
        "changes_per_day": 0,
        "usd_per_day": 0,
        "probation_hours": 24,
    }
)
"""Values in place of what cannot be understood. Keys that are absent keep what is in force without the document."""


def effective_limits(base: ChangeLimits, document: PolicyDocument, subject: Subject) -> ChangeLimits:
    """The limits of changing the subject. `base` is what the stack's parameters and the defaults say.

    `misread` holds what keeps changes of the subject from beginning; what goes on or goes back is not stopped by it.
    """
    change_limits = replace(base, approvers=effective_approvers(base.approvers, document, subject))
    held: list[str] = []
    for section in document.sections(subject):
        held += section.held
    for key, into in INTO_LIMITS.items():
        effective = find_value(document, key, subject)
        if effective is None:
            continue
        if effective.problem and KEYS[key].fallback is Fallback.HOLD:
            held.append(effective.problem)
        if not effective.problem or key in SAFEST:
            change_limits = into(change_limits, effective.value)
    objective = find_value(document, OBJECTIVE, subject)
    return replace(
        change_limits,
        misread=tuple(dict.fromkeys((*base.misread, *held))),
        is_live=bool(document),
        automatic=base.automatic and not asks_because(document, subject),
        objective_p95_s=objective.value if objective is not None and not objective.problem else None,
    )


def effective_approvers(base: Approvers, document: PolicyDocument, subject: Subject) -> Approvers:
    """The list that decides on the subject; `base` is the stack's list, which counts where the document has none."""
    owner = document.owners.get(subject.owner.strip().casefold()) if subject.owner else None
    effective = find_value(document, APPROVERS, subject)
    four_eyes = find_value(document, FOUR_EYES, subject)
    approvers = base
    if effective is not None:
        unreadable = effective.problem if effective.problem and not effective.value else ""
        approvers = Approvers(frozenset(effective.value), base.home, place=effective.place, unreadable=unreadable)
    owns = owner.people if owner is not None else frozenset()
    named = subject.owner.strip()
    if SLACK.fullmatch(named) or SHORT.fullmatch(named) or WHOLE.fullmatch(named):
        owns |= {named}
    return replace(approvers, four_eyes=four_eyes is not None and four_eyes.value is True, owners=owns)


def lists_of_approvers(base: Approvers, document: PolicyDocument) -> tuple[Approvers, ...]:
    """Every list that decides on something: who is on none of them decides on nothing."""
    environments: tuple[Environment | None, ...] = (None, *Environment)
    subjects = [Subject(each, owner) for owner in ("", *document.owners) for each in environments]
    return tuple(dict.fromkeys(effective_approvers(base, document, subject) for subject in subjects))


def effective_policy(base: Policy, document: PolicyDocument, subject: Subject) -> Policy:
    """The thresholds of the decision on the subject. `base` is what the stack's parameters and the defaults say."""
    policy = base
    for key, into in INTO_POLICY.items():
        effective = find_value(document, key, subject)
        if effective is not None and (not effective.problem or key in SAFEST):
            policy = into(policy, effective.value)
    return policy


def asks_because(document: PolicyDocument, subject: Subject) -> str:
    """Why nothing of the subject changes by itself, by the document; empty where the tag `rightsizer:mode` decides."""
    for key, policy_key in KEYS.items():
        effective = find_value(document, key, subject) if policy_key.fallback is Fallback.ASK else None
        if effective is not None and effective.problem:
            return effective.problem
        if key == AUTOMATIC and effective is not None and effective.value is False:
            return f"policy document, {effective.place} is false"
    return ""


def place_endpoint(endpoint: Endpoint, document: PolicyDocument) -> Endpoint:
    """The endpoint with the environment, the mode and the latency that the document says; its own p95 comes first."""
    if not document:
        return endpoint
    environment, source = document.environment_for(endpoint.ref.name, endpoint.tags)
    if (environment, source) != environment_of_tags(endpoint.tags):
        endpoint = replace(endpoint, environment=environment.value, environment_source=source)
    subject = Subject(environment, endpoint.owner)
    if endpoint.mode is Mode.AUTO and (why := asks_because(document, subject)):
        endpoint = replace(endpoint, mode=Mode.PROPOSE, asks_because=why)
    effective = find_value(document, OBJECTIVE, subject)
    if endpoint.objective.p95_s is not None or effective is None or effective.problem or effective.value is None:
        return endpoint
    objective = replace(endpoint.objective, p95_s=effective.value, source=f"policy document, {effective.place}")
    return replace(endpoint, objective=objective)


def policy_for_endpoint(endpoint: Endpoint, policy: Policy, document: PolicyDocument) -> Policy:
    """The thresholds of the decision on an endpoint that `place_endpoint` returned."""
    return (
        effective_policy(policy, document, Subject(environment_of(endpoint)[0], endpoint.owner)) if document else policy
    )


def channel_for(document: PolicyDocument, subject: Subject, otherwise: str) -> str:
    """The Slack channel of the subject's messages: of the sections that name one, the most specific."""
    named = (str(section.values[CHANNEL]) for section in document.sections(subject) if CHANNEL in section.values)
    return next(named, otherwise)


type IntoLimits = Callable[[ChangeLimits, Any], ChangeLimits]


def _hours(name: str) -> IntoLimits:
    return lambda limits, value: replace(limits, hours=replace(limits.hours, **{name: value}))


def _set(name: str) -> IntoLimits:
    return lambda limits, value: replace(limits, **{name: value})


INTO_LIMITS: Mapping[str, IntoLimits] = MappingProxyType(
    {
        "window": _set("window"),
        "cooldown_hours": lambda limits, value: replace(limits, cooldown=timedelta(hours=float(value))),
        "changes_per_day": _set("changes_per_day"),
        "usd_per_day": _set("usd_per_day"),
        "probation_hours": lambda limits, value: replace(limits, probation=timedelta(hours=float(value))),
        "proof_requests": _set("proof_requests"),
        "proof_days": lambda limits, value: replace(limits, proof_limit=timedelta(days=float(value))),
        "grace_days": lambda limits, value: replace(limits, grace=timedelta(days=float(value))),
        "bake_minutes": lambda limits, value: replace(limits, bake_s=int(60 * value)),
        "incident_alarms": _set("incident_alarms"),
        "dimensions": _set("dimensions"),
        "holidays": _hours("holidays"),
        "hours_zone": _hours("zone"),
        "stop_grace_minutes": lambda limits, value: replace(
            limits, hours=replace(limits.hours, grace=timedelta(minutes=float(value)))
        ),
        "wakes_per_day": _hours("wakes_a_day"),
        "longest_wake_hours": lambda limits, value: replace(
            limits, hours=replace(limits.hours, longest_wake=timedelta(hours=float(value)))
        ),
    }
)
"""How the value of a key becomes one of `ChangeLimits`."""
INTO_POLICY: Mapping[str, Callable[[Policy, Any], Policy]] = MappingProxyType(
    {
        MINIMUM_SAVING: lambda policy, value: replace(policy, minimum_saving_usd=value),
        "lookback_days": lambda policy, value: replace(policy, lookback_days=value),
        "tests_per_month": lambda policy, value: replace(policy, tests_per_month=value),
        "dimensions": lambda policy, value: policy.with_dimensions(value),
    }
)
"""How the value of a key becomes one of `Policy`."""


def describe_problem(place: str, wrong: str, key: str, allowed: str = "") -> str:
    """One sentence about what cannot be understood: its place, what is allowed, and what holds until it is put right.

    Example:
        >>> describe_problem("defaults.four_eyes", "it is 'maybe'", "four_eyes")
        "policy document, defaults.four_eyes: it is 'maybe', and should be true or false; until then true holds"
    """
    policy_key = KEYS[key]
    held = policy_key.safest if policy_key.fallback is Fallback.SAFE else policy_key.fallback.value
    if policy_key.fallback is Fallback.SAFE and len(held) < 15:
        held = f"{held} holds"
    return f"policy document, {place}: {wrong}, and should be {allowed or allowed_values(key)}; until then {held}"


def allowed_values(key: str) -> str:
    """The values that the key may have, for people."""
    policy_key = KEYS[key]
    if policy_key.kind.name in ("NUMBER", "WHOLE"):
        return f"{policy_key.kind.value} from {policy_key.least:g} to {policy_key.most:,.0f}"
    return policy_key.kind.value


def nearest(word: str, known: Sequence[str]) -> str:
    """The known word that was probably meant; empty where none is near: at most a third of its letters differ.

    Example:
        >>> nearest("windwo", ["window", "owners"])
        'window'
    """
    plain = word.casefold().replace("-", "_").replace(" ", "_")
    distances = sorted((_distance(plain, each), each) for each in known)
    return distances[0][1] if distances and distances[0][0] <= max(len(plain) // 3, 1) else ""


def _distance(one: str, other: str) -> int:
    """Letters to add, take away or replace, to get from one word to the other (Levenshtein); long words are far."""
    if abs(len(one) - len(other)) > 8:
        return max(len(one), len(other))
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        diagonal, row[0] = row[0], i
        for j, wanted in enumerate(other, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (letter != wanted))
    return row[-1]
