"""An endpoint with two variants from its metrics to the proof and back, through the functions of the stack."""

from collections.abc import Iterator
from contextlib import contextmanager

from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.recommendation import Finding, Gate
from rightsizer.terminal.document import recommendation_document
from sandbox.seed import PROPOSE, residents
from sandbox.traffic import write_past
from tests.doors.scene import BIG, Scene, scene, states

NAME, SECOND = "ab-test", "B"
LIMITS = '{"probation_hours": 1}'


@contextmanager
def two_variants() -> Iterator[Scene]:
    """Both variants run what `search-embeddings` runs, each with its load, and both are plainly too big."""
    (work,) = [one.work for one in residents() if one.name == BIG]
    beside = {"VariantName": SECOND, "InstanceType": work.home, "InitialInstanceCount": 1, "InitialVariantWeight": 3.0}
    with scene(Limits=LIMITS) as at:
        with at.box.gate.unrecorded():
            at.box.add_endpoint(
                NAME,
                instance_type=work.home,
                count=1,
                tags={**PROPOSE, "rightsizer:min-instances": "1"},
                created=at.box.clock.now.replace(month=9),
                more_variants=(beside,),
            )
        for variant in ("AllTraffic", SECOND):
            write_past(at.box, NAME, work, 1, variant=variant)
        at.works[NAME] = work
        at.drive(NAME)
        yield at


def fleet(at: Scene) -> dict[str, tuple[str, int, float]]:
    """Type, count and weight of each variant."""
    with at.box.gate.unrecorded():
        client = at.box.client("sagemaker")
        live = client.describe_endpoint(EndpointName=NAME)
        config = client.describe_endpoint_config(EndpointConfigName=live["EndpointConfigName"])
    types = {v["VariantName"]: v["InstanceType"] for v in config["ProductionVariants"]}
    return {
        v["VariantName"]: (types[v["VariantName"]], v["CurrentInstanceCount"], v["DesiredWeight"])
        for v in live["ProductionVariants"]
    }


def wait(at: Scene, hours: int, *ends: ProposalState) -> ProposalState:
    """Time goes on until the proposal is in one of these states."""
    for _ in range(hours * 12):
        at.pass_time(minutes=5)
        if states(at.proposals())[NAME] in ends:
            break
    return states(at.proposals())[NAME]


def test_both_variants_are_judged_proposed_deployed_proven_and_brought_back() -> None:
    with two_variants() as at:
        before = fleet(at)
        at.sweep()
        found = at.recommendations()[NAME]
        assert (found.kind, found.finding, found.gate) == (
            EndpointKind.MULTI_VARIANT,
            Finding.OVER_PROVISIONED,
            Gate.PROPOSE,
        )
        assert found.chosen_option is not None
        target = found.chosen_option.target
        assert [row["name"] for row in recommendation_document(found)["variants"]] == ["AllTraffic", SECOND]
        assert {found.variant, *(one.name for one in target.others)} == {"AllTraffic", SECOND}
        assert f"variant {target.others[0].name} on " in at.message(NAME).text
        at.click(NAME, "Approve")
        assert wait(at, 30, ProposalState.PROVEN) is ProposalState.PROVEN
        assert fleet(at) == {
            "AllTraffic": (target.instance_type, 1, before["AllTraffic"][2]),
            SECOND: (target.others[0].instance_type, 1, 3.0),
        }
        assert at.refused() == []
        at.pass_time(hours=30)
        at.sweep()
        again = at.recommendations()[NAME]
        assert again.evaluated_at > found.evaluated_at
        assert [row.instance_type for row in again.variants] == [kind for kind, _, _ in fleet(at).values()]
        assert again.finding is not Finding.UNDER_PROVISIONED
        assert again.usd_per_month is not None
        assert found.usd_per_month is not None
        assert again.usd_per_month < found.usd_per_month
        at.click(NAME, "Roll back")
        assert wait(at, 12, ProposalState.ROLLED_BACK) is ProposalState.ROLLED_BACK
        assert fleet(at) == before
        assert at.refused() == []
