"""Other chips and types without a GPU: which is named, and why another is not."""

from dataclasses import replace

from rightsizer.dimensions.other_architecture import OtherArchitecture, chip_refusal
from rightsizer.domain.history import History
from rightsizer.domain.option import OptionKind, Risk, Target
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from tests.dimensions.kit import judged, planned, said, why
from tests.recommender import kit
from tests.recommender.kit import judge
from tests.recommender.plain import demand


def test_another_chip_is_at_least_a_medium_risk_and_names_the_compiler() -> None:
    quotas = {name: 0 for name in kit.TYPES if name != "ml.g5.xlarge"}
    three = kit.endpoint("ml.g5.xlarge", 3, p95_s=0.72)
    three = replace(three, objective=replace(three.objective, min_instances=3))
    found = judged(three, kit.window(kit.steady(memory=90.0)), quotas=quotas)
    option = found.chosen_option
    assert option is not None
    assert option.target.instance_type == "ml.inf2.xlarge"
    assert option.risk >= Risk.MEDIUM
    assert "AWS Neuron" in option.client_change
    assert any("engineering time" in said for said in option.not_checked)
    assert "1.42 times" in option.facts["break-even"]


def test_another_chip_that_is_too_slow_by_its_datasheet_is_ruled_out_with_both_figures() -> None:
    types = kit.catalogue({"ml.inf2.xlarge": (4, 16, 1, "0.99")})
    chip = types.types["ml.inf2.xlarge"]
    assert chip.accelerator is not None
    slow = replace(chip, accelerator=replace(chip.accelerator, fp16_tflops=20.0))
    known = replace(types, types={**types.types, slow.name: slow})
    window = [kit.window(kit.steady(memory=90.0))]
    tight = kit.endpoint("ml.g5.xlarge", p95_s=0.72)
    found = judge(tight, window, kit.prices(), known, {}, History(), Policy(), kit.NOW)
    assert found.chosen_option is None
    assert "4.38 times slower" in why(found, OptionKind.OTHER_ARCHITECTURE, slow.name)


def test_too_few_chips_and_too_little_memory_are_said_in_the_singular_where_it_is_one() -> None:
    types = kit.catalogue(kit.OTHERS | {"ml.inf2.xlarge": (4, 16, 1, "0.99")}).types
    now, chip = types["ml.g5.12xlarge"], types["ml.inf2.xlarge"]

    def refused(gib: float) -> str:
        load = replace(demand(), gpus_used=4)
        load = replace(load, memory=replace(load.memory, need_gib=gib))
        reason = chip_refusal(now, chip, load, 9.0, Policy(), None)
        return reason.sentence if reason else ""

    assert refused(2.0) == "ml.inf2.xlarge has 1 chip, the model may use 4 GPUs"
    assert refused(10.0) == "the model needs up to 40.0 GiB on 4 GPUs, ml.inf2.xlarge offers 31.5 GiB"


def test_burstable_types_are_never_named_and_the_host_must_hold_the_model() -> None:
    small = judged(kit.endpoint(p95_s=0.66), kit.window(kit.steady(gpu=0.02, memory=30.0)))
    large = judged(kit.endpoint(p95_s=0.66), kit.window(kit.steady(gpu=0.02, memory=90.0)))
    assert {o.target.instance_type for o in small.options if not o.in_place} == {"ml.m8g.2xlarge", "ml.m5.2xlarge"}
    assert {o.target.instance_type for o in large.options if not o.in_place} == {"ml.m8g.4xlarge", "ml.m5.4xlarge"}


def test_types_without_a_gpu_say_why_not_for_each_architecture() -> None:
    works = judged(kit.endpoint(p95_s=0.72), kit.window(kit.steady(gpu=30.0)))
    assert "its GPU works (up to 30.0 %)" in why(works, OptionKind.OTHER_ARCHITECTURE, works.instance_type)
    unused = kit.window(kit.steady(gpu=0.02, memory=90.0))
    quotas = {"ml.m5.4xlarge": 0}
    found = judged(kit.endpoint(p95_s=0.66), unused, quotas=quotas)
    assert "quota for ml.m5.4xlarge endpoints is 0" in why(found, OptionKind.OTHER_ARCHITECTURE, "ml.m5")
    assert [o.target.instance_type for o in found.options if not o.in_place] == ["ml.m8g.4xlarge"]
    assert not [out for out in found.excluded if ".m8g." in out.instance_type], "offered, so not ruled out"
    full = judged(kit.endpoint(p95_s=0.66), kit.window(kit.steady(gpu=0.02, memory=90.0, host=90.0)))
    assert "ml.m5.4xlarge has 64 GiB" in why(full, OptionKind.OTHER_ARCHITECTURE, "ml.m5")
    assert "ml.m8g.4xlarge has 64 GiB" in why(full, OptionKind.OTHER_ARCHITECTURE, "ml.m8g")
    cheapest = judge(
        kit.endpoint("ml.g4dn.xlarge"), [unused], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW
    )
    assert "no arm64 type without a GPU is sold here for less" in str(cheapest.excluded)


def test_it_is_a_migration_that_the_program_does_not_carry_out() -> None:
    does, back = said(OtherArchitecture(), Target("ml.inf2.xlarge", 1))
    assert does == "run on 1 × ml.inf2.xlarge after a migration to another architecture"
    assert back == "deploys the old configuration again"
    assert planned(OtherArchitecture(), Target("ml.inf2.xlarge", 1)) is Code.NOT_IN_PLACE
