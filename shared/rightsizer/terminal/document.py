"""The JSON of `scan`, `explain` and changes.

Its keys are a promise (docs/cli-json.md): they are added to, never renamed.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from rightsizer.changes.reconcile import undo_commands
from rightsizer.domain.account_finding import AccountFinding
from rightsizer.domain.capacity_change import CapacityChange
from rightsizer.domain.change import Change
from rightsizer.domain.older_option import with_older_facts
from rightsizer.domain.option import Option, Target
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.price import Price
from rightsizer.domain.proposal import Decision, Proposal
from rightsizer.domain.reason import Reason
from rightsizer.domain.recommendation import ComponentFinding, Recommendation, VariantFinding
from rightsizer.domain.schedule import days_text
from rightsizer.recommender.other_endpoint import migration_phases
from rightsizer.render import effects, sentences
from rightsizer.render.effects import classes_of_days, stages_of
from rightsizer.terminal.survey import Survey, SurveyPolicy

VERSION = 1


def survey_document(survey: Survey) -> dict[str, Any]:
    """A whole scan. Money is text in US dollars per month, times are ISO 8601 in UTC."""
    return {
        "version": VERSION,
        "region": survey.region,
        "at": survey.at.isoformat(),
        "minimum_saving_usd_per_month": str(survey.minimum_saving),
        "totals": {
            "endpoints": len(survey.recommendations) + len(survey.unobserved),
            "usd_per_month": str(survey.spend),
            "savings_found": len(survey.large_enough),
            "saving_usd_per_month": str(survey.saving),
            "identified_usd_per_month": str(survey.identified_saving),
        },
        "endpoints": [recommendation_document(each) for each in survey.recommendations],
        "unobserved": [
            {"endpoint": each.ref.name, "reason": reason_document(each.reason)} for each in survey.unobserved
        ],
        "incomplete": [reason_document(each) for each in survey.incomplete],
        "account_findings": [finding_document(each) for each in survey.rest.findings],
        "account_unread": [reason_document(each) for each in survey.rest.unread],
    }


def policy_document(obeyed: SurveyPolicy, each: Recommendation | None = None) -> dict[str, Any]:
    """The policy that a survey obeyed, and with a recommendation what it says for that endpoint."""
    found: dict[str, Any] = {"source": obeyed.source, "problems": list(obeyed.problems)}
    if each is not None:
        rows = [
            {"key": row.key, "value": row.value, "source": row.source, "problem": row.problem}
            for row in obeyed.rows(each)
        ]
        found |= {"values": rows, "held": list(obeyed.hold_reasons(each))}
    return found


def finding_document(each: AccountFinding) -> dict[str, Any]:
    """One finding of the rest of the bill."""
    return {
        "code": each.code.value,
        "endpoint": each.endpoint or None,
        "owner": each.owner,
        "what": each.what,
        "usd_per_month": _usd(each.usd_per_month),
        "advice": each.advice,
        "advice_only": True,
        "evidence": dict(each.evidence),
        "items": [
            {
                "name": item.name,
                "owner": item.owner,
                "next_step": item.next_step or None,
                "detail": item.detail,
                "created_at": item.created_at.isoformat() if item.created_at else None,
                "last_used": item.last_used or None,
                "usd_per_month": _usd(item.usd_per_month),
            }
            for item in each.items
        ],
        "not_checked": list(each.not_checked),
    }


def recommendation_document(recommendation: Recommendation) -> dict[str, Any]:
    """One endpoint."""
    return {
        "endpoint": recommendation.ref.name,
        "arn": recommendation.ref.arn,
        "variant": recommendation.variant,
        "other_variants": list(recommendation.beside),
        "variants": [_variant(one, not recommendation.owned_by) for one in recommendation.variants],
        "components": [_component(one) for one in recommendation.components],
        "packing": None
        if recommendation.packing is None
        else {
            "instances": recommendation.packing.instances,
            "least": recommendation.packing.least,
            "most": recommendation.packing.most,
            "unreserved_usd_per_month": _usd(recommendation.packing.unreserved_usd_per_month),
        },
        "kind": recommendation.kind.value,
        "mode": recommendation.mode.value,
        "owner": recommendation.owner,
        "environment": _environment(recommendation),
        "instance_type": recommendation.instance_type,
        "instance_count": recommendation.instance_count,
        "usd_per_month": _usd(recommendation.usd_per_month),
        "price": None if recommendation.price is None else _price(recommendation.price),
        "finding": recommendation.finding.value,
        "reason": reason_document(recommendation.reason),
        "saving_usd_per_month": str(recommendation.saving_usd_per_month),
        "identified_usd_per_month": str(recommendation.identified_usd_per_month),
        "recommended": None
        if recommendation.chosen_option is None
        else option_document(recommendation.chosen_option, not recommendation.owned_by),
        "stages": [
            {
                "kind": option.kind.value,
                "change": sentences.change(option),
                "target": target_document(option.target),
                "saving_usd_per_month": str(option.saving_usd_per_month),
                "same_approval": number <= len(recommendation.stages),
            }
            for number, option in enumerate(stages_of(recommendation))
        ],
        "gate": recommendation.gate.value,
        "gate_reason": reason_document(recommendation.gate_reason),
        "evidence": _evidence(recommendation),
        "not_checked": list(recommendation.not_checked),
        "notes": [reason_document(note) for note in recommendation.notes],
    }


def explanation_document(recommendation: Recommendation, findings: Sequence[AccountFinding] = ()) -> dict[str, Any]:
    """One endpoint with every option, what was excluded, the replay, and the account findings about it."""
    replay = recommendation.replay
    return {
        "version": VERSION,
        **recommendation_document(recommendation),
        "options": [option_document(option, not recommendation.owned_by) for option in recommendation.options],
        "excluded": [
            {
                "instance_type": out.instance_type,
                "dimension": out.dimension.value if out.dimension else None,
                "reason": reason_document(out.reason),
            }
            for out in recommendation.excluded
        ],
        "replay": None
        if replay is None
        else {
            "days": replay.days,
            "hours_above_80_percent": replay.hours_above_80,
            "hours_above_100_percent": replay.hours_above_100,
            "worst_p95_s": replay.worst_p95_s,
            "memory_margin_gib": replay.memory_margin_gib,
            "requests_over_objective": replay.requests_over_objective,
            "requests": replay.requests,
            "requests_over_objective_today": replay.over_objective_today,
            "objective_s": replay.objective_s,
        },
        "account_findings": [finding_document(one) for one in findings if one.endpoint == recommendation.ref.name],
    }


def option_document(option: Option, ours: bool = True) -> dict[str, Any]:
    return {
        "kind": option.kind.value,
        "change": sentences.change(option),
        "instance_type": option.target.instance_type,
        "instance_count": option.target.instance_count,
        "other_variants": [
            {"name": v.name, "instance_type": v.instance_type, "instance_count": v.instance_count}
            for v in option.target.others
        ],
        **_schedule(option.target),
        "target": target_document(option.target),
        "policy_changes": [
            {"policy": one.policy, "effect": one.effect} for one in with_older_facts(option).policy_changes
        ],
        "late_share": option.late_share,
        "usd_per_month": str(option.usd_per_month),
        "saving_usd_per_month": str(option.saving_usd_per_month),
        "growth_usd_per_month": None if option.growth_usd is None else str(option.growth_usd),
        "switch_usd": str(option.switch_usd),
        "test_usd": str(option.test_usd),
        "test_hours": with_older_facts(option).test_hours if option.test_usd else None,
        "test_tells": option.test_tells,
        "test_needed": option.test_needed,
        "untested_risk": None if option.untested_risk is None else int(option.untested_risk),
        "payback_days": option.payback_days,
        "risk": int(option.risk),
        "performance_risk": int(option.performance_risk),
        "risks": {resource: int(risk) for resource, risk in option.risks.items()},
        "confidence": option.confidence,
        "effort": option.effort.value,
        "restart_needed": option.restart_needed,
        "rollback_possible": option.rollback_possible,
        "way_back": effects.way_back(option, ours).value,
        "in_place": option.in_place,
        "client_change": option.client_change,
        "facts": dict(option.facts),
        "phases": migration_phases(option),
        "notes": list(option.notes),
        "p95_s": option.p95_s,
        "price": _price(option.price),
        "not_checked": list(option.not_checked),
    }


def _variant(one: VariantFinding, ours: bool) -> dict[str, Any]:
    return {
        "name": one.name,
        "instance_type": one.instance_type,
        "instance_count": one.instance_count,
        "weight": one.weight,
        "usd_per_month": _usd(one.usd_per_month),
        "requests": one.requests,
        "finding": one.finding.value,
        "reason": reason_document(one.reason),
        "gate": one.gate.value,
        "recommended": option_document(one.options[0], ours) if one.options else None,
    }


def _component(one: ComponentFinding) -> dict[str, Any]:
    return {
        "name": one.name,
        "copies": one.copies,
        "needed": one.needed,
        "usd_per_month": _usd(one.usd_per_month),
        "adapter_of": one.base or None,
        "finding": one.finding.value,
        "reason": reason_document(one.reason),
        "figures": dict(one.figures),
        "days": [{"day": each.day.isoformat(), "requests": each.requests, "gpu": each.gpu} for each in one.by_day],
        "advice": one.advice,
    }


def _usd(amount: Decimal | None) -> str | None:
    return None if amount is None else str(amount)


def _environment(recommendation: Recommendation) -> dict[str, Any] | None:
    found = recommendation.environment
    if found is None:
        return None
    return {"name": found.environment.value, "source": found.source, "effects": list(found.effects)}


def _schedule(target: Target) -> dict[str, Any]:
    """Counts by the hour in UTC, by the days that they are for; nothing without a schedule."""
    return {"hourly_counts": _hourly_counts(target)} if target.hourly_counts is not None else {}


def _hourly_counts(target: Target) -> dict[str, list[int]] | None:
    return {days_text(one.weekdays): list(one.counts) for one in classes_of_days(target)} or None


def target_document(target: Target) -> dict[str, Any]:
    """The whole configuration that an option leads to; null is what stays as it is."""
    scale_in = target.scale_in
    return {
        "instance_type": target.instance_type,
        "instance_count": target.instance_count,
        "hourly_counts": _hourly_counts(target),
        "minimum": target.minimum,
        "maximum": target.maximum,
        "metric": target.metric,
        "target_value": target.target_value,
        "per_instance": target.per_instance,
        "routing": target.routing,
        "pools": list(target.pools),
        "idle_minutes": target.idle_minutes,
        "others": [
            {"name": v.name, "instance_type": v.instance_type, "instance_count": v.instance_count}
            for v in target.others
        ],
        "copies": dict(target.copies),
        "least_copies": dict(target.least_copies),
        "placement": dict(target.placement),
        "scale_in": None
        if scale_in is None
        else {
            "variant": scale_in.variant,
            "strategy": scale_in.strategy,
            "maximum_step": scale_in.maximum_step,
            "cooldown_minutes": scale_in.cooldown_minutes,
        },
    }


def proposal_document(proposal: Proposal) -> dict[str, Any]:
    """A proposal as it stands, with its option, its decision and its change."""
    option, decision = proposal.recommendation.chosen_option, proposal.decision
    return {
        "id": proposal.id,
        "endpoint": proposal.ref.name,
        "owner": proposal.recommendation.owner,
        "state": proposal.state.value,
        "approvable": proposal.approvable,
        "enable": proposal.enable,
        "recommended": option_document(option, proposal.approvable) if option else None,
        "saving_usd_per_month": str(proposal.recommendation.saving_usd_per_month),
        "approval_usd_per_month": str(proposal.recommendation.approval_usd_per_month),
        "created_at": proposal.created_at.isoformat(),
        "expires_at": proposal.expires_at.isoformat(),
        "offers_test": proposal.recommendation.offers_test,
        "decision": _decision(decision),
        "change": proposal.change_id,
        "outcome": proposal.outcome,
    }


def _decision(decision: Decision | None) -> dict[str, Any] | None:
    if decision is None:
        return None
    said = {"by": decision.by, "at": decision.at.isoformat(), "comment": decision.comment}
    return {**said, "test_first": decision.test_first}


def _price(price: Price) -> dict[str, Any]:
    return {
        "usd_per_hour": str(price.usd_per_hour),
        "source": price.source,
        "basis": price.basis,
        "as_of": price.as_of,
    }


def _evidence(recommendation: Recommendation) -> dict[str, Any] | None:
    if recommendation.evidence is None:
        return None
    return {
        "start": recommendation.evidence.start.isoformat(),
        "end": recommendation.evidence.end.isoformat(),
        "days": recommendation.evidence.days,
        "valid_share": recommendation.evidence.valid_share,
        "requests": recommendation.evidence.requests,
        "rung": recommendation.evidence.rung,
        "figures": dict(recommendation.evidence.figures),
    }


def reason_document(reason: Reason) -> dict[str, str]:
    return {"code": reason.code.value, "sentence": reason.sentence}


def open_change_document(change: Change, hard: bool) -> dict[str, Any]:
    """An open change; after a hard freeze with the lines that would bring its endpoint back."""
    shown = change_document(change) or {}
    return shown | ({"remaining": list(undo_commands(change))} if hard else {})


def open_capacity_change_document(one: CapacityChange, hard: bool) -> dict[str, Any]:
    """An open capacity change; after a hard freeze with the line that would bring the old policy back."""
    return {
        "id": one.id,
        "subject": one.subject,
        "state": one.state.value,
        "outcome": one.outcome,
        "remaining": [one.rollback_command] if hard and one.rollback_command else [],
        "next_due": one.next_due.isoformat() if one.next_due else None,
    }


def change_document(one: Change | None) -> dict[str, Any] | None:
    """A change with its journal; None where there is none."""
    if one is None:
        return None
    return {
        "id": one.id,
        "endpoint": one.ref.name,
        "state": one.state.value,
        "outcome": one.outcome,
        "remaining": list(one.remaining),
        "next_due": one.next_due.isoformat() if one.next_due else None,
        "restore": list(one.plan.restore_file),
        "journal": [
            {"at": e.at.isoformat(), "step": e.step, "status": e.status, "detail": e.detail} for e in one.journal
        ],
    }


def unread_documents(unread: Iterable[UnreadRow]) -> list[dict[str, str]]:
    """Rows that were passed over, with the cause."""
    return [{"row": one.key, "cause": one.cause} for one in unread]
