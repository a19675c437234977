"""A lack of capacity for the chosen type: automatic mode goes on with the next option that passed the same gate."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from rightsizer.domain.change import ChangeState
from rightsizer.domain.option import Target
from rightsizer.domain.recommendation import Gate
from tests.changing.world import NAME, NEW_TYPE, World, an_option, world

OTHER = "ml.g5.2xlarge"
FIRST = an_option()
SECOND = an_option(target=Target(OTHER, 1), saving_usd_per_month=Decimal(321), by_itself=True)


def offered(*options: Any, by: str = "policy") -> Any:
    judged = {"gate": Gate.APPLY, "options": options}
    return world(options[0], by=by, judged=judged, tags={"rightsizer:mode": "auto"})


def lacking(w: World, times: int) -> None:
    w.box.script_deployment(NAME, *["capacity"] * times)


def test_automatic_mode_goes_on_with_the_next_option_an_hour_later() -> None:
    with offered(FIRST, SECOND) as w:
        lacking(w, 1)
        began = w.now
        w.start()
        w.run(1)
        waiting = w.change
        change = w.run(12)
        past = {p.to_type: (p.ended, p.failure) for p in w.store.history(NAME).endpoint}
        (variant,) = w.live()["ProductionVariants"]
    assert waiting.state is ChangeState.PLANNED
    assert waiting.next_due is not None
    assert waiting.next_due - began < timedelta(hours=3)
    assert OTHER in waiting.outcome
    assert (change.state, change.option.target.instance_type) == (ChangeState.PROVEN, OTHER)
    assert change.saving_usd_per_month == 321
    assert past == {NEW_TYPE: ("update-failed", "capacity"), OTHER: ("proven", "")}
    assert variant["CurrentInstanceCount"] == 1
