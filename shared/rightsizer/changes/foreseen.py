"""What an approval would meet: refusals of preflight and of the plan that the observation tells already.

Who is asked, and says yes, should not read afterwards that it could never be done. The rules are those of `apply`.
"""

from collections.abc import Iterator

from rightsizer.autoscaling import policies, scheduled_actions
from rightsizer.changes import clone, preflight
from rightsizer.domain.endpoint import Endpoint
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.option import CONFIG_KINDS, ORDERED, Option
from rightsizer.domain.reason import Reason
from rightsizer.recommender.proposal import Reach


def unless_refused(endpoint: Endpoint, option: Option | None, catalogue: Catalogue, reach: Reach) -> Reach:
    """The same, or why an approval would be refused: then there is no button, and the reasons stand in its place."""
    if option is None or not (reach.approvable or reach.tag):
        return reach
    found = tuple(_refusals(endpoint, option, catalogue))
    return Reach(False, f"preflight would refuse it: {'; '.join(r.sentence for r in found)}") if found else reach


def _refusals(endpoint: Endpoint, option: Option, catalogue: Catalogue) -> Iterator[Reason]:
    if endpoint.configuration_replaced:
        yield preflight.replaced(endpoint.config_name)
    if option.kind not in ORDERED:
        yield from policies.refusals(endpoint.scaling, True, ())  # whose alarms start the policies is not observed
    if option.kind not in CONFIG_KINDS:
        return
    yield from scheduled_actions.unreadable(endpoint.scaling)
    if endpoint.unknown_fields:
        yield clone.unknown_fields(endpoint.config_name, endpoint.unknown_fields)
    yield from clone.foreign_key(endpoint.config_name, endpoint.kms_key, endpoint.ref.account)
    runs = {variant.instance_type for variant in endpoint.variants}
    for name in option.target.pools or (option.target.instance_type,):
        hardware = catalogue.find(name) if name not in runs else None
        yield from clone.key_on_nvme(endpoint.kms_key, hardware)
