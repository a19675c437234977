"""Phases of a migration to Inferentia or Trainium: what each costs, and what leads on to the next."""

from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.option import Effort, Option, OptionKind, Target
from rightsizer.domain.reason import Code, Reason
from rightsizer.recommender.alternatives import migration_cost_reason
from rightsizer.recommender.other_endpoint import SERVING_PHASES, TRAINING_PHASES, migration_phases
from tests.samples import option, price


def on_chip(name: str = "ml.inf2.xlarge", **changes: Any) -> Option:
    given: dict[str, Any] = {"kind": OptionKind.OTHER_ARCHITECTURE, "target": Target(name, 2)}
    return option(**(given | {"price": price(name, "0.99"), "usd_per_month": Decimal("1445.40")} | changes))


def test_each_phase_names_its_work_its_cost_and_what_leads_on() -> None:
    told = migration_phases(on_chip())
    assert list(told) == ["phase 1, assess", "phase 2, pilot", "phase 3, roll out"]
    assert told["phase 1, assess"].startswith("check that Neuron supports every operator")
    assert "one ml.inf2.xlarge beside today's fleet for 7 days costs USD 166.32" in told["phase 2, pilot"]
    assert "each week in which both fleets run costs USD 332.64 more" in told["phase 3, roll out"]


@pytest.mark.parametrize("one", [option(), on_chip("ml.c7g.xlarge"), on_chip(kind=OptionKind.INSTANCE_TYPE)])
def test_other_options_have_no_phases(one: Option) -> None:
    assert migration_phases(one) == {}


def test_trainium_that_serves_has_them_too() -> None:
    assert len(migration_phases(on_chip("ml.trn1.2xlarge"))) == 3


def test_training_and_serving_go_through_the_same_phases() -> None:
    names = [[each.split(": ")[0] for each in phases] for phases in (SERVING_PHASES, TRAINING_PHASES)]
    assert names[0] == names[1] == ["assess", "pilot", "roll out"]


def test_a_migration_that_does_not_pay_its_work_within_a_year_is_no_reason_for_a_change() -> None:
    def why(saving: str, effort: Effort = Effort.VERY_HIGH) -> Reason | None:
        return migration_cost_reason(on_chip(saving_usd_per_month=Decimal(saving), effort=effort))

    text = (
        "a migration to ml.inf2.xlarge would save USD 9,960.00 a year and takes about two weeks of work, taken as USD"
    )
    assert why("830") == Reason(Code.SAVING_TOO_SMALL, f"{text} 10,000")
    assert why("834") is None
    assert why("1", Effort.HIGH) is None, "another image for the same model is a smaller work"
