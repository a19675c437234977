"""GPU memory of several GPUs: what one of them held is known only as a mean over busy and idle ones."""

from dataclasses import replace
from datetime import date, timedelta

from rightsizer.domain.demand import MemoryClass
from rightsizer.domain.policy import Policy
from rightsizer.domain.usage import SLOTS, DailyUsage, Spread
from rightsizer.recommender.fit import memory_need
from tests.recommender.kit import catalogue


def day(number: int, instance_type: str, gpus: int, top: float) -> DailyUsage:
    return DailyUsage(
        date(2026, 11, 1) + timedelta(days=number),
        instance_type,
        gpus,
        (10.0,) * SLOTS,
        (5.0,) * SLOTS,
        (1.0,) * 24,
        ((0, 1.0),),
        1.0,
        0.0,
        None,
        Spread(0.8 * top, 0.85 * top, 0.9 * top, 0.95 * top, top),
        None,
        None,
    )


def test_memory_averaged_over_idle_gpus_is_taken_to_be_on_one_but_never_more_than_its_card() -> None:
    known = catalogue()
    days = [day(0, "ml.g5.12xlarge", 4, 0.2), replace(day(1, "ml.g5.2xlarge", 1, 0.75))]
    need = memory_need(days, known, Policy(), "pytorch", None)
    assert need.kind is MemoryClass.ELASTIC
    card = known.types["ml.g5.2xlarge"].accelerator
    assert card is not None
    assert need.peak_gib > 0.75 * card.memory_gib  # 4 x 0.2 of the card
    full = [day(0, "ml.g5.12xlarge", 4, 0.6), day(1, "ml.g5.2xlarge", 1, 0.75)]
    assert memory_need(full, known, Policy(), "pytorch", None).peak_gib <= card.usable_gib


def test_memory_of_one_kind_of_instance_is_the_mean_of_its_gpus() -> None:
    known = catalogue()
    card = known.types["ml.g5.12xlarge"].accelerator
    assert card is not None
    need = memory_need([day(i, "ml.g5.12xlarge", 4, 0.5) for i in range(3)], known, Policy(), "pytorch", None)
    assert abs(need.peak_gib / (0.5 * card.memory_gib) - 1) < 0.01
