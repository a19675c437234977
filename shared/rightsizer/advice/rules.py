"""The rules that advice cites, each with a sentence, a figure and a public source (docs/advise-rules.md)."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources

from rightsizer.advice.answer import Advice


class Rule(StrEnum):
    """A rule by the name that reasons cite. The letter is its group, as in docs/advise-rules.md."""

    PREPROCESSING_ON_CPU = "rule C1"
    CLASSICAL_ON_CPU = "rule C2"
    NETWORK_ON_GPU = "rule C3"
    SMALL_NETWORK_ON_CPU = "rule C4"
    ENCODER_ON_CPU_IS_SLOW = "rule C5"
    CLASS_FROM_PROCESSOR = "rule C6"
    LEGACY_FAMILIES = "rule C7"
    EDGE = "rule C8"
    ELASTIC_INFERENCE_GONE = "rule C9"
    SEPARATE_FLEETS = "rule C10"
    TINY_NETWORK_ON_CPU = "rule C11"
    ALGORITHM_PAGES = "rule C12"
    DATA_SPREAD = "rule C13"
    SERVING_MEMORY = "rule M1"
    KV_CACHE = "rule M2"
    TRAINING_MEMORY = "rule M3"
    SHARDING = "rule M4"
    ADAPTERS = "rule M5"
    USABLE_MEMORY = "rule M6"
    HOST_MEMORY = "rule M7"
    TENSOR_PARALLEL = "rule M8"
    TABLE_MEMORY = "rule M9"
    OPTIMISER_STATES = "rule M10"
    ROOFLINE = "rule S1"
    CONTINUOUS_BATCHING = "rule S2"
    SPARE_CAPACITY = "rule S3"
    UTILISATION = "rule S4"
    NO_BF16 = "rule S5"
    TIED_PLANS = "rule S6"
    NO_FP8 = "rule S7"
    HOST_DECODES = "rule S8"
    SPOT_FOR_TRAINING = "rule P1"
    SPOT_NEEDS_CHECKPOINTS = "rule P2"
    SPOT_DISCOUNT = "rule P3"
    NO_RESERVED_INSTANCES = "rule P4"
    COMMIT_LAST = "rule P5"
    AUTOSCALING = "rule P6"
    WORKING_HOURS = "rule P7"
    WARM_POOL = "rule P8"
    NO_ON_DEMAND_PRICE = "rule P9"
    LONGEST_JOB = "rule P10"
    REAL_TIME_LIMITS = "rule H1"
    SERVERLESS_LIMITS = "rule H2"
    ASYNC_LIMITS = "rule H3"
    SCALE_TO_ZERO = "rule H4"
    COMPONENTS_TO_ZERO = "rule H5"
    BATCH = "rule H6"
    LAMBDA_LIMITS = "rule H7"
    PACKING = "rule H8"
    SERVERLESS_BREAK_EVEN = "rule H9"
    NEURON_SUPPORT = "rule N1"
    PRICE_OF_A_REQUEST = "rule N2"
    NEURON_METRICS = "rule N3"
    NEURON_PHASES = "rule N4"
    INFERENTIA_SERVES = "rule N5"
    EFA = "rule T1"
    SERVING_TYPE_ANEW = "rule T2"
    ADAPTERS_BY_HOUR = "rule T3"
    MISSING_IS_NOT_IDLE = "rule R1"
    SUMMED_METRIC = "rule R2"
    LOW_USE_IS_A_HINT = "rule R3"
    LATENCY_BOUND = "rule R4"
    ALARM_IS_A_HINT = "rule R5"
    RESERVED_MEMORY = "rule R6"
    MEASURE_FIRST = "rule R7"
    MEASURED_RUNS = "rule R8"
    PRODUCTION_TWO = "rule E1"
    STAGING_MIRRORS = "rule E2"
    DEVELOPMENT_SMALL = "rule E3"
    GUARDRAIL = "rule E4"
    NEW_ENDPOINTS_ASK = "rule E5"
    WHOLE_DEVICES = "rule K1"
    REQUESTS_FROM_PEAK = "rule K2"
    SHARED_DEVICE = "rule K3"
    IDLE_DEVICES = "rule K4"
    LOAD_FITS = "rule K5"
    CHEAPEST_GOOD_ENOUGH = "rule X1"


@dataclass(frozen=True, slots=True)
class Cited:
    """Text of a rule, and where it can be read."""

    id: str
    name: str
    """Name of the member of `Rule`."""
    rule: str
    figure: str
    """The figure that is computed with, or nothing."""
    source: str
    url: str
    """Address of the source, or a page of docs/ beside the page of rules."""


@cache
def rules() -> Mapping[str, Cited]:
    """Every rule by what reasons cite, such as ``rule M1``, in the order of the page."""
    with resources.files(__package__).joinpath("rules.csv").open(encoding="utf-8") as file:
        return {f"rule {row['id']}": Cited(**row) for row in csv.DictReader(file)}


def cited_rules(answer: Advice) -> tuple[str, ...]:
    """The rules that the reasons of an answer cite, in the order of the page."""
    reasons = [*answer.notes, *(refused.reason for refused in answer.refused)]
    reasons += [reason for option in answer.options for reason in option.reasons]
    reasons += [reason for variant in answer.environments for reason in variant.differs]
    named = {part for reason in reasons for part in str(reason.source).split(", ")}
    return tuple(rule for rule in rules() if rule in named)
