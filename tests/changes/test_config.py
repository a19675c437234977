"""A plan that deploys: a clone, roll-back alarms first, autoscaling taken away and given back, and a way to return."""

from rightsizer.changes.clone import CHANGE_TAG
from rightsizer.changes.plan import update_step
from rightsizer.domain.change import ChangeState
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.plan import StepKind
from tests.changes.account import NEW_TYPE, OLD, OLD_TYPE
from tests.changes.memory import NIGHT, World, an_option, autoscaled, world

ROUTED = an_option(kind=OptionKind.ROUTING, target=Target(OLD_TYPE, 2, routing="LEAST_OUTSTANDING_REQUESTS"))


def order(w: World) -> list[StepKind]:
    return list(dict.fromkeys(step.kind for step in w.account.done))


def test_everything_is_done_in_an_order_in_which_each_death_leaves_a_way_back() -> None:
    w = world(scaling=autoscaled(1, 4, NIGHT))
    w.start()
    assert w.run(12).state is ChangeState.PROVEN
    assert order(w) == [
        StepKind.CREATE_CONFIG,
        StepKind.TAG_CONFIG,
        StepKind.PUT_ALARM,
        StepKind.DEREGISTER_TARGET,
        StepKind.UPDATE_ENDPOINT,
        StepKind.REGISTER_TARGET,
        StepKind.PUT_POLICY,
        StepKind.PUT_SCHEDULED,
        StepKind.DELETE_ALARMS,
    ]
    assert w.account.known_alarms == {}, "nothing of ours stays but a configuration"


def test_the_clone_differs_in_what_was_asked_and_carries_the_tag_of_the_change() -> None:
    w = world(ROUTED, count=3)
    w.start()
    w.run(6)
    (old,), (new,) = (w.account.configs[name]["ProductionVariants"] for name in (OLD, w.account.config_name))
    differs = {key: new.get(key) for key in {*old, *new} if old.get(key) != new.get(key)}
    routing = {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
    assert differs == {"InitialInstanceCount": 2, "RoutingConfig": routing}
    assert w.account.tagged[w.account.config_name] == {CHANGE_TAG: w.change.id}
    assert w.account.tagged[OLD] == {CHANGE_TAG: w.change.id}, "IAM lets no other be deployed"


def test_counts_that_were_raised_since_the_configuration_was_written_have_a_way_back_of_their_own() -> None:
    w = world(scaling=autoscaled(1, 8))
    w.account.scale(3)
    change = w.start()
    assert change.plan.back_config not in (OLD, change.plan.new_config)
    (row,) = w.account.configs[change.plan.back_config]["ProductionVariants"]
    assert (row["InstanceType"], row["InitialInstanceCount"]) == (OLD_TYPE, 3)
    same = world().start()
    assert same.plan.back_config == OLD


def test_pools_put_the_cheap_type_first_and_keep_the_old_one() -> None:
    w = world(an_option(kind=OptionKind.INSTANCE_POOLS, target=Target(NEW_TYPE, 1, pools=(NEW_TYPE, OLD_TYPE))))
    w.start()
    assert w.run(12).state is ChangeState.PROVEN
    (row,) = w.account.configs[w.account.config_name]["ProductionVariants"]
    pools = sorted(row["InstancePools"], key=lambda pool: pool["Priority"])
    assert [pool["InstanceType"] for pool in pools] == [NEW_TYPE, OLD_TYPE]


def test_what_runs_already_is_not_deployed_again() -> None:
    w = world(an_option(target=Target(OLD_TYPE, 1)), instance_type=OLD_TYPE)
    w.account.configs[OLD]["MetricsConfig"] = {"EnableEnhancedMetrics": True, "EnableDetailedObservability": False}
    change = w.start()
    assert change.state is ChangeState.REFUSED
    assert "already runs what is asked" in change.outcome


def test_what_ends_a_slowness_is_not_undone_for_being_slow() -> None:
    slow = {"rightsizer:mode": "propose", "rightsizer:p95-ms": "500"}
    watched = {name.rpartition("-")[2] for name in world(tags=slow).start().plan.alarms}
    restored = {name.rpartition("-")[2] for name in world(an_option(restores=True), tags=slow).start().plan.alarms}
    assert "p95" in watched
    assert "p95" not in restored
    assert "5xx" in watched & restored


def test_an_update_names_its_counts_or_keeps_the_live_ones() -> None:
    assert update_step("chat", "new", {}).params["RetainAllVariantProperties"] is False
    kept = update_step("chat", "new", {"AutoRollbackConfiguration": {}}, keep_counts=True).params
    assert (kept["RetainAllVariantProperties"], "DeploymentConfig" in kept) == (True, True)
    assert "DeploymentConfig" not in update_step("chat", "new", {}).params
