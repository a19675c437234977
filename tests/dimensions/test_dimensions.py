"""The registry names each way to change an endpoint once, and each says what it takes."""

import pytest

from rightsizer.dimensions import DIMENSIONS, dimension_of
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import CHANGEABLE, OptionKind
from rightsizer.errors import InputError
from rightsizer.recommender.dimension import Restart, find

K = OptionKind
ANEW, BESIDE = Restart.NEW_INSTANCES, Restart.NEW_ENDPOINT
PARTS = frozenset({EndpointKind.INFERENCE_COMPONENTS})
NONE = frozenset[EndpointKind]()
BY_KIND = {
    # kind: what restarts where something does, which endpoints, deployed, watched by alarms
    K.INSTANCE_TYPE: (ANEW, CHANGEABLE, True, True),
    K.INSTANCE_COUNT: (ANEW, CHANGEABLE, False, False),
    K.TYPE_AND_COUNT: (ANEW, CHANGEABLE, True, True),
    K.FEWER_GPUS: (ANEW, CHANGEABLE, True, True),
    K.AUTOSCALING: (ANEW, CHANGEABLE, False, False),
    K.SCHEDULE: (ANEW, CHANGEABLE, False, False),
    K.ROUTING: (ANEW, CHANGEABLE, True, True),
    K.INSTANCE_POOLS: (ANEW, CHANGEABLE, True, True),
    K.SCALE_TO_ZERO: (BESIDE, PARTS | {EndpointKind.ASYNC}, False, False),
    K.ASYNC: (BESIDE, NONE, False, False),
    K.SERVERLESS: (BESIDE, NONE, False, False),
    K.PACKING: (BESIDE, NONE, False, False),
    K.OTHER_ARCHITECTURE: (ANEW, NONE, False, False),
    K.DELETE: (ANEW, frozenset({EndpointKind.REAL_TIME, EndpointKind.MULTI_VARIANT}), False, False),
    K.REMOVE_VARIANT: (ANEW, NONE, False, False),
    K.COPIES: (ANEW, PARTS, False, False),
    K.SCALE_IN: (ANEW, PARTS, True, True),
    K.PLACEMENT: (Restart.NEW_COPIES, PARTS, False, True),
}


@pytest.mark.parametrize("kind", OptionKind)
def test_each_kind_of_option_says_what_it_takes(kind: OptionKind) -> None:
    one = dimension_of(kind)
    assert (one.restart, one.applies_to, kind in one.deploys, one.is_watched(kind)) == BY_KIND[kind]


def test_only_a_deletion_leaves_nothing_that_could_be_brought_back() -> None:
    assert [one.kinds for one in DIMENSIONS if not one.keeps] == [(K.DELETE,)]


def test_what_is_deployed_is_one_of_the_kinds() -> None:
    assert all(set(one.deploys) <= set(one.kinds) for one in DIMENSIONS)


def test_a_kind_that_nobody_registered_is_named() -> None:
    with pytest.raises(InputError, match="no registered dimension makes options of the kind delete"):
        find([one for one in DIMENSIONS if K.DELETE not in one.kinds], K.DELETE)
