"""Fields that the service model does not know are found, wherever they hide."""

import botocore.session
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.aws.configuration import unknown_paths

SHAPE = (
    botocore.session.get_session().get_service_model("sagemaker").operation_model("DescribeEndpointConfig").output_shape
)
KNOWN = {
    "EndpointConfigName": "c",
    "ProductionVariants": [
        {"VariantName": "v", "InstanceType": "ml.g5.xlarge", "RoutingConfig": {"RoutingStrategy": "RANDOM"}}
    ],
}


def test_a_known_configuration_has_no_unknown_field() -> None:
    assert list(unknown_paths(SHAPE, KNOWN)) == []


def test_an_unknown_field_is_named_with_its_path() -> None:
    variant = {"VariantName": "v", "QuantumConfig": {"Qubits": 3}, "RoutingConfig": {"Stickiness": 1}}
    raw = {"Novel": 1, "ProductionVariants": [variant]}
    assert list(unknown_paths(SHAPE, raw)) == [
        "Novel",
        "ProductionVariants[0].QuantumConfig",
        "ProductionVariants[0].RoutingConfig.Stickiness",
    ]


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_no_answer_however_odd_breaks_the_check(value: object) -> None:
    assert all(isinstance(path, str) for path in unknown_paths(SHAPE, {"ProductionVariants": value}))
