"""Phases of a migration to Inferentia or Trainium: what each costs, and what leads on to the next."""

from decimal import Decimal

from rightsizer.recommender.migration import SERVING_PHASES, TRAINING_PHASES, serving_phases
from tests.samples import price


def test_each_phase_names_its_work_its_cost_and_what_leads_on() -> None:
    told = serving_phases(price("ml.inf2.xlarge", "0.99"), Decimal("12.40"))
    assert list(told) == ["phase 1, assess", "phase 2, pilot", "phase 3, roll out"]
    assert told["phase 1, assess"].startswith("check that Neuron supports every operator")
    assert "one ml.inf2.xlarge beside today's fleet for 7 days costs USD 166.32" in told["phase 2, pilot"]
    assert "about USD 12.40" in told["phase 3, roll out"]


def test_training_and_serving_go_through_the_same_phases() -> None:
    names = [[each.split(": ")[0] for each in phases] for phases in (SERVING_PHASES, TRAINING_PHASES)]
    assert names[0] == names[1] == ["assess", "pilot", "roll out"]
