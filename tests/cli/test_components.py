"""A person asks for another scale-in policy or placement: a proposal, which waits for its approval like every other."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from rightsizer import bootstrap
from rightsizer.domain.change import ChangeState
from rightsizer.domain.proposal import ProposalState
from rightsizer.render import sentences, slack, text
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from tests import samples
from tests.changing import scenarios
from tests.changing.world import NAME, World, world

SCENARIO = scenarios.SCALE_IN
WORDS = ("components", NAME, "--scale-in", "consolidation", "--cooldown", "30", "--json")


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[World]:
    """A deployed table without an open proposal, and an endpoint of components."""
    monkeypatch.setenv("COLUMNS", "300")
    extra: Mapping[str, Any] = getattr(request, "param", {})
    rejected = {"state": ProposalState.REJECTED, "decision": None}
    endpoint = {**SCENARIO.endpoint, **extra}
    seed = SCENARIO.seed if endpoint["inference_components"] else None
    with world(SCENARIO.option, seed=seed, kind=SCENARIO.kind, by="cli:somebody", proposed=rejected, **endpoint) as w:
        monkeypatch.setenv("RIGHTSIZER_TABLE", "t")
        bootstrap.set_clock(lambda: w.box.clock.now)
        yield w
        bootstrap.reset()


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any, str]:
    code = run(list(words))
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, " ".join(err.split())


def asked(w: World, capsys: pytest.CaptureFixture[str]) -> str:
    code, found, _ = said(capsys, *WORDS)
    assert code == Exit.NOTHING_TO_DO
    return str(found["proposal"]["id"])


def test_what_is_asked_for_is_proposed_approved_and_proven(deployed: World, capsys: pytest.CaptureFixture[str]) -> None:
    one = asked(deployed, capsys)
    assert deployed.box.config_name(NAME) == f"{NAME}-config"
    said(capsys, "approve", one, "--json")
    deployed.proposal = deployed.store.proposal(one)  # type: ignore[assignment]
    deployed.start()
    change = deployed.run(12)
    assert change.state is ChangeState.PROVEN, change.outcome
    (variant,) = deployed.box.world.fleet.config(deployed.box.config_name(NAME)).request["ProductionVariants"]
    assert variant["ManagedInstanceScaling"]["ScaleInPolicy"] == {"Strategy": "CONSOLIDATION", "CooldownInMinutes": 30}


def test_no_saving_is_promised_wherever_people_read_it(deployed: World, capsys: pytest.CaptureFixture[str]) -> None:
    proposal = deployed.store.proposal(asked(deployed, capsys))
    assert proposal is not None
    assert sentences.headline(proposal.recommendation).endswith("no saving is promised")
    assert proposal.recommendation.saving_usd_per_month == 0
    assert "how copies are packed" in proposal.recommendation.reason.sentence
    assert text.proposal(proposal, "")[1]
    assert slack.proposal_blocks(proposal)


def test_an_evaluation_leaves_it_open_while_the_configuration_stays(
    deployed: World, capsys: pytest.CaptureFixture[str]
) -> None:
    one = asked(deployed, capsys)
    ours = deployed.store.proposal(one)
    assert ours is not None
    judged = samples.recommendation(NAME, fingerprint=ours.recommendation.fingerprint, evaluated_at=deployed.now)
    other = samples.proposal("p-other", recommendation=judged, created_at=deployed.now)
    assert deployed.store.save(judged, None) is False
    assert deployed.store.save(judged, other) is False
    kept = deployed.store.proposal(one)
    assert kept is not None
    assert kept.state is ProposalState.PENDING
    moved = samples.recommendation(NAME, fingerprint="another-config|1|", evaluated_at=deployed.now)
    deployed.store.save(moved, None)
    gone = deployed.store.proposal(one)
    assert gone is not None
    assert gone.state is ProposalState.WITHDRAWN


def test_the_same_asked_twice_is_one_proposal(deployed: World, capsys: pytest.CaptureFixture[str]) -> None:
    one = asked(deployed, capsys)
    code, _, err = said(capsys, *WORDS)
    assert (code, f"this is asked already ({one})" in err) == (Exit.FAILED, True)


def test_the_judgement_of_the_endpoint_stays_what_it_was(deployed: World, capsys: pytest.CaptureFixture[str]) -> None:
    before = deployed.store.last_evaluated(NAME)
    deployed.box.clock.advance(scenarios.LONG.probation)
    asked(deployed, capsys)
    assert deployed.store.last_evaluated(NAME) == before


@pytest.mark.parametrize("deployed", [{"inference_components": False, "variant_extra": {}}], indirect=True)
def test_an_endpoint_without_components_has_nothing_to_ask_for(
    deployed: World, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = said(capsys, *WORDS)
    assert (code, "it has no inference components" in err) == (Exit.FAILED, True)


OWNED = {"tags": {"rightsizer:mode": "propose", "aws:cloudformation:stack-name": "search"}}


@pytest.mark.parametrize("deployed", [OWNED], indirect=True)
def test_a_stack_gets_the_lines_of_its_own_source(deployed: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, *WORDS)
    assert code == Exit.FAILED
    assert "+ ScaleInPolicy: {Strategy: CONSOLIDATION, CooldownInMinutes: 30}" in err


@pytest.mark.parametrize("deployed", [{"tags": {"rightsizer:mode": "off"}}], indirect=True)
def test_a_tag_that_says_no_is_named_with_the_command(deployed: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, *WORDS)
    assert (code, "aws sagemaker add-tags" in err) == (Exit.FAILED, True)


def test_limits_of_aws_are_said_in_one_line(deployed: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "components", NAME, "--scale-in", "idle-release", "--cooldown", "2")
    assert (code, "cooldown_minutes must be 5 to 1440, got 2" in err) == (Exit.FAILED, True)


def test_a_placement_is_asked_for_all_components_or_for_those_that_are_named(
    deployed: World, capsys: pytest.CaptureFixture[str]
) -> None:
    placed = ("components", NAME, "--placement", "binpack", "--json")
    code, found, _ = said(capsys, *placed, "--component", "small")
    one = deployed.store.proposal(found["proposal"]["id"])
    code, found, _ = said(capsys, *placed)
    both = deployed.store.proposal(found["proposal"]["id"])
    assert code == Exit.NOTHING_TO_DO
    assert one is not None
    assert both is not None
    assert one.recommendation.options[0].target.placement == (("small", "BINPACK"),)
    assert both.recommendation.options[0].target.placement == (("large", "BINPACK"), ("small", "BINPACK"))
    assert both.recommendation.options[0].switch_usd == 0
    assert found["proposal"]["recommended"]["change"] == "pack the copies of 2 components on few instances"
    said(capsys, "approve", both.id, "--json")
    deployed.proposal = both
    deployed.start()
    assert deployed.run(12).state is ChangeState.PROVEN


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--placement", "spread", "--component", "none"), Exit.FAILED, "no component none; it has large, small"),
        (("--placement", "spread", "--scale-in", "idle-release"), Exit.USAGE, "a change does one of them"),
        ((), Exit.USAGE, "give either --scale-in or --placement"),
    ],
)
def test_what_cannot_be_asked_is_said(
    words: tuple[str, ...], code: Exit, message: str, deployed: World, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _, err = said(capsys, "components", NAME, *words)
    assert (found, message in err.replace("│ ", "").replace(" │", "")) == (code, True)


def doctor(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str]]:
    """Detail and remedy of each role that has to be passed."""
    _, found, _ = said(capsys, "doctor", "--json")
    return [(c["detail"], c["remedy"]) for c in found["checks"] if c["action"] == "iam:PassRole"]


def test_doctor_names_the_grant_that_lacks_and_says_when_it_is_there(
    deployed: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert doctor(capsys) == []
    trust = {"Version": "2012-10-17", "Statement": []}
    role = {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "ours", "AssumeRolePolicyDocument": trust}}
    template = {"Parameters": {"Limits": {"Type": "String", "Default": "{}"}}, "Resources": {"ApplyRole": role}}
    deployed.box.gate.judge = lambda call: None
    deployed.box.client("cloudformation").create_stack(StackName="rightsizer", TemplateBody=json.dumps(template))
    ((detail, remedy),) = doctor(capsys)
    line = remedy[remedy.index("aws iam put-role-policy") :]
    assert f"may not pass arn:aws:iam::111122223333:role/model of {NAME}" in detail
    scenarios.follow(deployed.box, line)
    assert doctor(capsys) == [(f"ours may pass arn:aws:iam::111122223333:role/model of {NAME}", "")]
