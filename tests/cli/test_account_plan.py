"""A Savings Plan is shared among all endpoints of a scan, also where no stack has added up what they cost."""

from decimal import Decimal

from rightsizer import bootstrap
from rightsizer.aws.session import Session
from rightsizer.domain.policy import Policy
from rightsizer.domain.recommendation import Recommendation
from rightsizer.terminal.survey import survey
from sandbox.account import Sandbox
from tests.cli.conftest import use

TYPE, PLAN = "ml.g5.8xlarge", 4.0


def scanned(box: Sandbox, *names: str) -> dict[str, Recommendation]:
    ports = bootstrap.reading_ports(Session("eu-west-1"))
    found = survey(ports, "eu-west-1", Policy(), box.clock.now, lambda *_: None, names)
    return {one.ref.name: one for one in found.recommendations}


def test_two_endpoints_bear_half_of_a_plan_each(box: Sandbox) -> None:
    for name in ("left", "right"):
        box.add_endpoint(name, TYPE, tags={"rightsizer:p95-ms": "2000"})
        use(box, name, 5.0, 200.0)
    without = {name: one.saving_usd_per_month for name, one in scanned(box).items()}
    box.world.plans.buy(PLAN)
    bootstrap.reset()
    found = scanned(box)
    usd = sum((one.usd_per_month or Decimal(0) for one in found.values()), Decimal(0))
    on_demand = usd - Decimal(PLAN) / Decimal("0.7") * 730
    assert 0 < found["left"].saving_usd_per_month < without["left"]
    saved = sum(one.saving_usd_per_month for one in found.values())
    assert abs(saved - on_demand) < 1


def test_one_endpoint_alone_bears_the_whole_plan(box: Sandbox) -> None:
    for name in ("left", "right"):
        box.add_endpoint(name, TYPE, tags={"rightsizer:p95-ms": "2000"})
        use(box, name, 5.0, 200.0)
    box.world.plans.buy(PLAN)
    assert scanned(box, "left")["left"].saving_usd_per_month < scanned(box)["left"].saving_usd_per_month
