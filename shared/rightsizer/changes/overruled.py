"""Rules that hold an option, as it was approved, against a newer recommendation: may it still begin, and how large.

`changes.stages` applies them to a change.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from enum import StrEnum

from rightsizer.domain.change import Change, PassedTest
from rightsizer.domain.hardware import Catalogue, InstanceType
from rightsizer.domain.option import ORDERED, Option, OptionKind, Risk, Target
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.policy import TYPE_AND_COUNT
from rightsizer.domain.proposal import Proposal
from rightsizer.domain.reason import UNREADABLE, Code, Reason, seconds_text, time_text
from rightsizer.domain.recommendation import Finding, Gate, Recommendation

FLEETS = frozenset(
    {
        OptionKind.INSTANCE_TYPE,
        OptionKind.INSTANCE_COUNT,
        OptionKind.TYPE_AND_COUNT,
        OptionKind.FEWER_GPUS,
        OptionKind.INSTANCE_POOLS,
        OptionKind.SCHEDULE,
    }
)
"""Options that say how many instances of which type serve, so that one can be held against another."""

ALIKE = 0.1
"""How much a target value may differ, as a share: it follows a measured ratio, which moves a little from day to day,
and an autoscaled fleet is offered with three times that room (`recommender.options`)."""


COVERED = Decimal("0.5")
"""Share of the approved saving that a newer fleet must still save for the approval to cover it.

A look a day later often needs an instance more: who agreed to two in place of four keeps half of the saving with
three, and need not be asked again for that. A plan that lost more than half of its worth is another one, as a step is
that saves less than half of the best one (`recommender.stages`).
"""


def is_independent_of_recommendation(option: Option) -> bool:
    """Whether it brings room back, or a person ordered it: no recommendation allows or forbids such an option."""
    return option.restores or option.kind in ORDERED


class ApprovedAs(StrEnum):
    """Kind of beginning that an approval covers."""

    CHANGE = "change"
    TEST = "test"
    """A shadow test of the option."""
    CHANGE_AFTER_TEST = "change-after-test"
    """The option itself, since its shadow test ended."""


def overruling_reason(
    option: Option,
    decided: Recommendation,
    newest: Recommendation | None,
    *,
    by_policy: bool = False,
    approved_as: ApprovedAs = ApprovedAs.CHANGE,
) -> Reason | None:
    """Why the newest recommendation stops an option approved on `decided`; None where the option may go on.

    NEWER_JUDGEMENT: it is forbidden. JUDGEMENT_UNKNOWN: the newest look had too little data, so the change waits for
    another. It is allowed where the newest gate lets such an option pass, or holds it back for a reason that speaks of
    no harm (`is_against`), and where no more capacity of the target is needed than it gives. To be listed is not
    enough: of what is listed, some needs a test first, and some is riskier than what was approved. `by_policy`:
    automatic mode decided, and no person.
    """
    if newest is None or newest.evaluated_at <= decided.evaluated_at or is_independent_of_recommendation(option):
        return None
    when = f"the recommendation of {time_text(newest.evaluated_at)}"
    unread = newest.gate_reason.code in UNREADABLE
    if newest.finding is Finding.NOT_ENOUGH_DATA or unread:
        why = newest.gate_reason if unread else newest.reason
        return Reason(Code.JUDGEMENT_UNKNOWN, f"{when} saw too little to allow what was approved: {why.sentence}")
    if option.grows:
        return _growth_reason(option, newest, when, by_policy=by_policy)
    if newest.finding is Finding.UNDER_PROVISIONED:
        return _refusal(f"{when} finds the endpoint under-provisioned: {newest.reason.sentence}")
    if decided.gate is Gate.TEST and approved_as is ApprovedAs.CHANGE:
        approved_as = ApprovedAs.TEST
    if newest.gate is Gate.TEST and approved_as is ApprovedAs.CHANGE:
        return _refusal(f"{when} asks for a shadow test first: {newest.gate_reason.sentence}")
    answered = newest.gate is Gate.PROPOSE and not by_policy
    held = newest.gate in (Gate.SILENT, Gate.PROPOSE)
    if held and is_against(newest.gate_reason.code, answered=answered):
        return _refusal(f"{when} holds it back: {newest.gate_reason.sentence}")
    targets = [(decided.variant, option), *_of_others(option)]
    needs = (_need_reason(one, newest.of_variant(name), when, approved_as) for name, one in targets)
    return next((reason for reason in needs if reason is not None), None)


def covered_fleet(
    option: Option,
    decided: Recommendation,
    newest: Recommendation | None,
    catalogue: Catalogue,
    *,
    approved_as: ApprovedAs,
) -> Option:
    """The fleet that an approval begins: the approved one, or the newest of its type where that needs more.

    The approval covers the newer fleet while it is of the same kind, has no higher risk and keeps `COVERED` of the
    approved saving: an instance more, or a larger size with the same GPU. A change of several variants, and growth,
    begin as they were approved.
    """
    if newest is None or newest.evaluated_at <= decided.evaluated_at or option.kind not in FLEETS:
        return option
    if option.grows or option.restores or option.target.others or newest.finding is Finding.UNDER_PROVISIONED:
        return option
    view = newest.of_variant(decided.variant)
    alike = [one for one in _sure_options(option, view, approved_as) if _is_covered_kind(one, option)]
    if any(_is_within(one.target, option.target) for one in alike):
        return option
    if approved_as is not ApprovedAs.TEST:  # what its test costs and tells was said of the approved type
        alike += [one for one in view.options if _is_larger_size(one, option, catalogue)]
    alike = [one for one in alike if not one.target.others]
    first = decided.chosen_option
    alike_first = first is not None and (_is_same_type(first, option) or _is_larger_size(option, first, catalogue))
    agreed = first if first is not None and alike_first else option  # of all fleets since, the first
    risk, usd = _risk_of(agreed, approved_as), COVERED * agreed.saving_usd_per_month
    covered = (one for one in alike if _risk_of(one, approved_as) <= risk and one.saving_usd_per_month >= usd)
    return max(covered, key=lambda one: one.saving_usd_per_month, default=option)


def covered_sentence(now: Option, before: Option, newest: Recommendation) -> str:
    """Sentence on the larger fleet that begins, and why the approval covers it."""
    same = now.target.instance_type == before.target.instance_type
    then = _target_text(before.target) if same else _fleet_text(before.target)
    return (
        f"the recommendation of {time_text(newest.evaluated_at)} needs {_target_text(now.target)} of"
        f" {now.target.instance_type} in place of {then}; the approval covers it, for it saves"
        f" ${now.saving_usd_per_month:,.2f} of ${before.saving_usd_per_month:,.2f} a month at no higher risk"
    )


def _is_covered_kind(option: Option, other: Option) -> bool:
    """Whether both change the fleet by the same means: a schedule is none of a plain type and count."""
    return option.kind is other.kind or {option.kind, other.kind} <= TYPE_AND_COUNT


def _is_larger_size(option: Option, other: Option, catalogue: Catalogue) -> bool:
    """Whether it is sure, and has the same GPU with a larger host: what a host is too small for, the next one does.

    As many GPUs: a model runs on more of them only where it is divided otherwise.
    """
    a, b = option.target, other.target
    larger = _has_larger_host(catalogue.find(a.instance_type), catalogue.find(b.instance_type))
    return larger and not option.test_usd and option.in_place and _is_covered_kind(option, other) and _is_no_less(a, b)


def _has_larger_host(hardware: InstanceType | None, other: InstanceType | None) -> bool:
    """Whether both are sizes of a family with as many of the same GPU, and the first has more vCPUs or memory."""
    if hardware is None or other is None or hardware.family != other.family:
        return False
    alike = (hardware.accelerator, hardware.accelerator_count) == (other.accelerator, other.accelerator_count)
    hosts = (hardware.vcpu, hardware.memory_gib), (other.vcpu, other.memory_gib)
    return alike and hosts[0] != hosts[1] and all(a >= b for a, b in zip(*hosts, strict=True))


def _is_no_less(target: Target, needed: Target) -> bool:
    """Whether as many instances run in each hour as were agreed to, or more."""
    return _is_no_more(zip(needed.week_counts, target.week_counts, strict=True))


def _sure_options(option: Option, newest: Recommendation, approved_as: ApprovedAs) -> list[Option]:
    """Options of the newest recommendation that are like this one, and need no test that it did not need."""
    untested = approved_as is ApprovedAs.CHANGE and option.untested_risk is not None  # a person took the risk
    alike = (one for one in newest.options if _is_same_type(one, option))
    return [one for one in alike if untested or approved_as is ApprovedAs.TEST or not one.test_usd]


def _of_others(option: Option) -> Iterator[tuple[str, Option]]:
    """The option as it is to each other variant that it changes: each is held against that variant's own options."""
    for target in option.target.others:
        yield target.name, replace(option, target=Target(target.instance_type, target.instance_count))


def _growth_reason(option: Option, newest: Recommendation, when: str, *, by_policy: bool) -> Reason | None:
    """Why the newest recommendation stops growth; None where it still asks for exactly that."""
    if newest.finding is not Finding.UNDER_PROVISIONED:
        return _refusal(f"{when} finds nothing short any more: {newest.reason.sentence}")
    alike = [o for o in newest.options if o.grows and o.kind is option.kind and _is_same_type(o, option)]
    if not any(_is_within(o.target, option.target) and _is_within(option.target, o.target) for o in alike):
        first = newest.chosen_option
        needs = "names no growth that would do" if first is None else f"asks for {_fleet_text(first.target)}"
        return _refusal(f"{when} {needs}, and {_fleet_text(option.target)} was approved")
    if by_policy and newest.gate is not Gate.APPLY:
        return _refusal(f"{when} holds it back: {newest.gate_reason.sentence}")
    return None


def _fleet_text(target: Target) -> str:
    return f"{_target_text(target)} of {target.instance_type}"


def slow_test_reason(test: PassedTest, option: Option, decided: Recommendation) -> Reason | None:
    """Why a change does not follow its test by itself: the shadow answered later than the objective allows.

    None where the new fleet has more instances than today's, for then the shadow had more to do than one of them will.
    """
    objective = decided.replay.objective_s if decided.replay is not None else None
    more = max(option.target.week_counts) > decided.instance_count
    if more or objective is None or test.p95_s is None or test.p95_s <= objective:
        return None
    slow = f"the p95 would be {seconds_text(test.p95_s)}, and {seconds_text(objective)} are allowed"
    text = f"at the speed of its shadow test {slow}"
    return Reason(Code.TOO_SLOW, f"{option.target.instance_type} does not follow its test: {text}")


def recommendation_at_start(newest: Recommendation, change: Change) -> Recommendation:
    """A recommendation of the time when the change was created, in place of the one that cannot be read."""
    gate = Gate.TEST if change.plan.kind is PlanKind.SHADOW_TEST else Gate.PROPOSE
    return replace(newest, evaluated_at=change.created_at, gate=gate)


def is_by_policy(proposal: Proposal | None) -> bool:
    """Whether automatic mode decided; where nobody knows, the stricter answer."""
    return proposal is None or (proposal.decision is not None and proposal.decision.is_automatic)


def closing_reasons(against: Reason | None) -> tuple[Reason, ...]:
    """Reasons that end the change; unknown contents of the newest recommendation only let it wait."""
    return (against,) if against is not None and against.code is not Code.JUDGEMENT_UNKNOWN else ()


def is_against(code: Code, *, answered: bool) -> bool:
    """Whether the newest gate's reason forbids an earlier approval. Codes not listed here forbid it.

    `answered`: a person is asked because of the reason, and a person approved.
    """
    match code:
        case Code.SAFE_TO_APPLY | Code.ALREADY_RIGHT | Code.IDLE:
            return False
        case Code.SAVING_TOO_SMALL | Code.NOT_CHEAPER | Code.DEARER_THAN_OFFERED | Code.NO_PRICE:
            return False  # it saves less than was thought, and harms nobody
        case Code.COMMITTED | Code.PAYBACK_TOO_LONG:
            return False  # it saves less than was thought, and harms nobody
        case Code.COOLDOWN | Code.ALREADY_SEEN | Code.EVALUATED_RECENTLY:
            return False  # preflight keeps the rest between two changes by itself
        case Code.MODE_OFF | Code.MODE_REPORT | Code.NOT_OPTED_IN:
            return False  # preflight goes by the tag as it is then
        case Code.NEEDS_APPROVAL | Code.NOT_IN_PLACE | Code.OTHER_KIND | Code.AUTOSCALED:
            return not answered
        case Code.TEST_WORTH_IT:
            return not answered  # a person was told of the test, and decided with it or without it
        case Code.NO_OBJECTIVE | Code.RISK_TOO_HIGH | Code.TOO_LITTLE_CONFIDENCE | Code.TOO_MANY_ERRORS:
            return not answered
        case _:
            return True


def _need_reason(option: Option, newest: Recommendation, when: str, approved_as: ApprovedAs) -> Reason | None:
    """Why the endpoint needs more, or something else, than the option gives; None where it does not."""
    if option.kind is OptionKind.DELETE:
        return (
            None
            if newest.finding is Finding.IDLE
            else _refusal(f"{when} does not find it idle: {newest.reason.sentence}")
        )
    if newest.finding is Finding.IDLE:
        return None  # nobody calls it, so that no target is too small
    return _capacity_reason(option, newest, when, approved_as)


def _capacity_reason(option: Option, newest: Recommendation, when: str, approved_as: ApprovedAs) -> Reason | None:
    """Why no listed option that is allowed is carried by the target; None where one is."""
    target = option.target
    alike = [one for one in newest.options if _is_same_type(one, option)]
    sure = _sure_options(option, newest, approved_as)
    most = _largest_risk(option, newest, approved_as)
    if any(_is_within(o.target, target) and _risk_of(o, approved_as) <= most for o in sure):
        return None
    if alike and not sure:
        return _refusal(f"{when} asks for a shadow test of {target.instance_type} first")
    if sure and (risk := _risk_of(sure[0], approved_as)) > most:
        return _refusal(f"{when} rates {target.instance_type} with performance risk {risk:d}, above {most:d}")
    if sure:
        needs, gives = _target_text(sure[0].target), _target_text(target)
        at, given_at = _scaling_text(sure[0].target), _scaling_text(target)
        return _refusal(f"{when} needs {needs} of {target.instance_type}{at}, and {gives}{given_at} was approved")
    return _unlisted_reason(option, newest, when)


def _unlisted_reason(option: Option, newest: Recommendation, when: str) -> Reason:
    """Why an option of which nothing alike is listed may not go on, in the words of what rules it out.

    An exclusion alone forbids nothing. The type that runs is excluded as not cheaper than itself wherever its plain
    fleet stays as it is, while a schedule, another routing or a lower minimum of that same type is listed.
    """
    target = option.target
    own_kind, of_type = (
        next((e for e in newest.excluded if e.instance_type == target.instance_type and e.dimension is kind), None)
        for kind in (option.kind, None)
    )
    if own_kind is not None:
        return _refusal(f"{when} rules {own_kind.title} out: {own_kind.reason.sentence}")
    if of_type is not None and target.instance_type != newest.instance_type:
        return _refusal(f"{when} rules {of_type.title} out: {of_type.reason.sentence}")
    what = f"{target.instance_count} x {target.instance_type} ({option.kind.value})"
    return _refusal(f"{when} no longer lists {what} among what serves: {newest.reason.sentence}")


def _risk_of(option: Option, approved_as: ApprovedAs) -> Risk:
    """The risk of the option as it was approved: without the shadow test that is proposed before it, or with it."""
    without = option.untested_risk if approved_as is ApprovedAs.CHANGE else None
    return option.risk if without is None else without


def _largest_risk(option: Option, newest: Recommendation, approved_as: ApprovedAs) -> Risk:
    """The largest risk that is allowed: that of what was approved, or of what the newest gate lets pass.

    What a person is asked about counts only where it is the same fleet: another type's risk was agreed to by nobody.
    """
    first = newest.chosen_option if newest.gate in (Gate.PROPOSE, Gate.APPLY) else None
    if first is None or (newest.gate is Gate.PROPOSE and not _is_same_type(first, option)):
        return _risk_of(option, approved_as)
    return max(_risk_of(option, approved_as), _risk_of(first, approved_as))


def _is_same_type(option: Option, other: Option) -> bool:
    return option.target.instance_type == other.target.instance_type and _is_alike(option, other)


def _is_alike(option: Option, other: Option) -> bool:
    return option.kind is other.kind or {option.kind, other.kind} <= FLEETS


def _is_within(needed: Target, target: Target) -> bool:
    """Whether what is needed is no more than what is given, at each hour of the week and in each bound that both have.

    Autoscaling that starts an instance at a lower load gives more: the target value may be no more than `ALIKE` above.
    """
    bounds = ((needed.minimum, target.minimum), (needed.maximum, target.maximum))
    hours = zip(needed.week_counts, target.week_counts, strict=True)
    if not _is_no_more(hours) or not _is_no_more((a, b) for a, b in bounds if a is not None and b is not None):
        return False
    at, given_at = needed.target_value, target.target_value
    return at is None or given_at is None or given_at <= (1 + ALIKE) * at


def _is_no_more(pairs: Iterable[tuple[int, int]]) -> bool:
    return all(needed <= given for needed, given in pairs)


def _target_text(target: Target) -> str:
    if target.minimum is not None and target.maximum is not None:
        return f"{target.minimum} to {target.maximum} instances"
    hours = target.week_counts
    return f"{min(hours)} to {max(hours)} instances" if min(hours) != max(hours) else f"{hours[0]} instance(s)"


def _scaling_text(target: Target) -> str:
    return "" if target.target_value is None else f", scaled at a target value of {target.target_value:g}"


def _refusal(sentence: str) -> Reason:
    return Reason(Code.NEWER_JUDGEMENT, sentence)
