"""What a person was asked before: it stays the answer while nothing speaks against it but chance.

Where a fleet just holds its limits, one day more in the look-back turns the answer, and the next turns it back. A
question that is gone on the morning after cannot be answered, and an approval finds nothing that it may begin.
"""

from collections.abc import Sequence
from dataclasses import replace

from rightsizer.domain.endpoint import Mode
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.policy import TYPE_AND_COUNT
from rightsizer.recommender.candidates import CandidateType, check_candidate
from rightsizer.recommender.context import EvaluationContext, share_results
from rightsizer.recommender.days_of_week import replay_plan
from rightsizer.recommender.fleet_size import fleet_of_option, replay_if_carried
from rightsizer.recommender.late_requests import failed_instances
from rightsizer.recommender.options import check_fleet
from rightsizer.recommender.priced_option import price_fleet, sized_slowdown

BY_CHANCE = 1.5
"""Times the allowed late requests that chance makes of them: the replay serves 5,000 requests, of which 0.3 % are
fifteen, and two standard deviations more are twenty-three."""
KINDS = TYPE_AND_COUNT | {OptionKind.SCHEDULE}


def with_open_question(context: EvaluationContext, fingerprint: str, sure: Sequence[Option]) -> tuple[Option, ...]:
    """The options with what was asked before: first, until another one saves a least saving more, and else behind.

    `fingerprint` is that of the endpoint now: a question about another configuration is over.
    """
    open_question = context.inputs.history.asked
    if (
        open_question is None
        or open_question.fingerprint != fingerprint
        or not _may_stand(context, open_question.option)
    ):
        return tuple(sure)
    alike = (
        option
        for option in sure
        if option.kind is open_question.option.kind and option.target == open_question.option.target
    )
    kept = next(alike, None)
    if kept is None and (context.within_objective or context.endpoint.mode is not Mode.AUTO):
        kept = _carried_still(
            context, open_question.option
        )  # what automatic mode may do by itself has to hold every limit
    if kept is None:
        return tuple(sure)
    others = tuple(option for option in sure if option is not kept)
    least = float(context.usd_per_month) * context.policy.minimum_saving_share
    if others and float(others[0].saving_usd_per_month - kept.saving_usd_per_month) >= least:
        return (others[0], kept, *others[1:])
    return (kept, *others)


def _may_stand(context: EvaluationContext, option: Option) -> bool:
    """Whether it is a plain saving of a fleet that nothing scales; one that waits for a test is judged after it.

    Nor one with another number of GPUs in an instance: one queue before four of them serves as several before one each
    do not, so that what the replay says against such a fleet is more than chance.
    """
    hardware = context.inputs.catalogue.find(option.target.instance_type)
    if hardware is None or hardware.accelerator_count != context.runs.accelerator_count:
        return False
    plain = option.kind in KINDS and option.in_place and not option.target.day_counts and not option.target.others
    saves = not (option.restores or option.grows) and option.saving_usd_per_month > 0
    enough = min(option.target.week_counts) >= context.owner_minimum  # the owner's tag may be newer than the question
    return plain and saves and enough and not context.endpoint.scaling and not context.is_fleet_too_small


def _carried_still(context: EvaluationContext, option: Option) -> Option | None:
    """The option as it would be made today, where its fleet carries the days within what chance explains."""
    policy, hardware = context.policy, context.inputs.catalogue.find(option.target.instance_type)
    shares = {name: BY_CHANCE * getattr(policy, name) for name in ("excess_share", "grown_share", "late_budget")}
    wider = replace(context.inputs, policy=replace(policy, **shares))
    again = share_results(context, replace(context, inputs=wider, judges_again=True))
    candidate = check_candidate(again, hardware) if hardware is not None else None
    if hardware is None or not isinstance(candidate, CandidateType) or not candidate.is_certain:
        return None
    slower = sized_slowdown(again, candidate)
    fleet = replace(fleet_of_option(again, option, hardware, slower), load=again.load_margin)
    failed = failed_instances(again, hardware.name, slower, candidate.workers)
    if fleet.mean_count <= (1 + policy.failed_room) * failed or replay_if_carried(again, fleet) is None:
        return None
    priced = price_fleet(context, candidate, fleet, option.target.routing)
    priced = replace(priced, notes=tuple(dict.fromkeys((*priced.notes, *option.notes))))  # what was told with it
    found = check_fleet(context, candidate, priced)
    if not isinstance(found, Option) or found.saving_usd_per_month <= 0 or found.target != option.target:
        return None
    if not context.within_objective:
        return replace(priced, p95_s=found.p95_s)  # what is late beyond the usual share is chance
    p95_s = replay_plan(context, replace(fleet, load=1.0))[0].p95_s
    return found if p95_s <= policy.objective_factor * context.objective.p95_s else None
