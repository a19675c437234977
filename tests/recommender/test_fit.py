"""GPU memory of several GPUs: what one of them held is known only as a mean over busy and idle ones."""

from dataclasses import replace
from datetime import date, timedelta

from rightsizer.domain.demand import MemoryClass
from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.domain.usage import SLOTS, DailyUsage, Spread
from rightsizer.recommender.fit import memory_need
from tests.recommender import kit
from tests.recommender.kit import catalogue, judge


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


def test_a_smaller_card_keeps_the_room_for_a_new_version_that_the_policy_asks_for() -> None:
    signals = kit.steady(memory=40.0)  # 19.2 of 48 GiB: 20.4 with its margin, 25.0 with room for a new version
    quotas: dict[str, int] = {}
    given = (kit.prices(), kit.catalogue(), quotas, History())
    plain = judge(kit.endpoint(), [kit.window(signals)], *given, Policy(), kit.NOW)
    assert {o.target.instance_type for o in plain.options} & {"ml.g6.xlarge", "ml.g5.xlarge"}
    roomy = replace(Policy(), memory_room_smaller=0.3)
    found = judge(kit.endpoint(), [kit.window(signals)], *given, roomy, kit.NOW)
    assert not {o.target.instance_type for o in found.options} & {"ml.g6.xlarge", "ml.g5.xlarge"}
    said = {e.instance_type: e.reason.sentence for e in found.excluded}
    assert "30 % are kept free for a new version of the model" in said["ml.g6.xlarge"]
    runs = judge(kit.endpoint("ml.g6.xlarge"), [kit.window(kit.steady(memory=85.0))], *given, roomy, kit.NOW)
    assert all("new version" not in e.reason.sentence for e in runs.excluded if e.instance_type == "ml.g6.xlarge")
