"""The fleet: every endpoint with configuration, tags, autoscaling and models, in few calls.

For each endpoint DescribeEndpointConfig (cached); endpoints and models by the hundred (`search`), and DescribeEndpoint
and DescribeModel where that does not tell; tags by the hundred, scalable targets by fifty. What cannot be read of one
endpoint never stops the others.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from rightsizer.aws.configuration import (
    ConfigurationReader,
    EndpointConfiguration,
    EndpointParts,
    InMemoryConfigurations,
    endpoint_from,
)
from rightsizer.aws.endpoint_memory import ApiAnswer, EndpointMemory, KnownEndpoint, SearchReader, known_endpoint
from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.models import ModelFacts, ModelReader, weights_size
from rightsizer.aws.scaling import ScalingReader
from rightsizer.aws.session import Session, request_threads
from rightsizer.aws.tags import TagReader, Tags
from rightsizer.domain.endpoint import (
    Endpoint,
    EndpointRef,
    Observation,
    ScalableTarget,
    Unobserved,
    variant_resource_id,
)
from rightsizer.domain.reason import Code, Reason, reason_of
from rightsizer.domain.trigger import ListedEndpoint
from rightsizer.errors import ReadError, RightsizerError, VanishedError
from rightsizer.ports.evaluation import EndpointSummary

if TYPE_CHECKING:
    from types_boto3_sagemaker import SageMakerClient

    from rightsizer.aws.local_cache import LocalCache

CHUNK = 100
"""Endpoints observed together: one request of the tagging API."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of one endpoint, or is remembered of it as it is."""

    endpoint: ApiAnswer
    configuration: EndpointConfiguration
    models: Mapping[str, ModelFacts]
    """Models that were read before, by name."""
    recalled: bool
    """Whether the endpoint itself was not described but remembered, or found by a search."""


@dataclass(frozen=True, slots=True)
class _Shared:
    """What a chunk of endpoints shares, and what could not be read of it."""

    tags: Mapping[str, Tags | Reason]
    scaling: Mapping[str, tuple[ScalableTarget, ...]] | None
    notes: tuple[Reason, ...]


class SageMakerFleet:
    """Reads the endpoints of the session's account and Region (port `FleetReader`)."""

    def __init__(self, session: Session, memory: "EndpointMemory | LocalCache | None" = None, workers: int = 8) -> None:
        self._session = session
        self._memory = memory
        self._known: Mapping[str, KnownEndpoint] = {}
        self._found: dict[str, ApiAnswer] = {}
        """What a search told of endpoints, by name, until it is used."""
        self._client: SageMakerClient = session.client("sagemaker")
        self._configurations = ConfigurationReader(self._client, InMemoryConfigurations())
        self._models = ModelReader(self._client)
        self._search = SearchReader(self._client)
        self._tags = TagReader(session.client("resourcegroupstaggingapi"), self._client)
        self._scaling = ScalingReader(session.client("application-autoscaling"))
        self._workers = workers
        self._described: dict[str, ApiAnswer] = {}
        self._recalled: set[str] = set()
        """ARNs of those in `_described` that come from the memory or a search."""
        self._stood: set[str] = set()
        """ARNs of those whose state a cache told, since a listing has their times unchanged."""
        self._lock = threading.Lock()

    def list_endpoints(self) -> Iterator[EndpointSummary]:
        """Every endpoint of the account and Region, in pages of 100."""
        token: dict[str, Any] = {}
        while True:
            with translate_read_errors("sagemaker:ListEndpoints", "listing the endpoints"):
                page = self._client.list_endpoints(MaxResults=100, **token)
            yield from (_summary(row) for row in page["Endpoints"])
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}

    def recall(self, listed: Sequence[ListedEndpoint]) -> None:
        """Take what is remembered of endpoints as they were listed lately, and search for the others.

        It holds until the next call.
        """
        self._recall_known(listed)
        self._found = dict(self._search.endpoints([one for one in listed if one.name not in self._known]))

    def _recall_known(self, listed: Sequence[ListedEndpoint]) -> None:
        known = self._memory.load_known([one.name for one in listed]) if self._memory is not None and listed else {}
        self._known = {
            one.name: found
            for one in listed
            if (found := known.get(one.name)) is not None and found.is_of(one.created_at, one.modified_at)
        }

    def find(self, names: Iterable[str]) -> list[EndpointSummary]:
        """The summaries of these endpoints; names that do not exist are left out.

        The descriptions are kept for the next `observe`, so that looking once costs one call.
        """
        summaries = []
        for name in dict.fromkeys(names):
            known = self._known.get(name)
            spared = known.answer if known is not None and not known.scaled else self._found.pop(name, None)
            try:
                answer = spared or self._describe(name)
            except VanishedError:
                continue
            summary = _summary(answer)
            self._hold(summary, answer, recalled=spared is not None)
            summaries.append(summary)
        return summaries

    def _hold(self, summary: EndpointSummary, answer: ApiAnswer, *, recalled: bool) -> None:
        with self._lock:
            self._described[summary.ref.arn] = answer
            if recalled:
                self._recalled.add(summary.ref.arn)
            else:
                self._recalled.discard(summary.ref.arn)

    def observe(self, summaries: Sequence[EndpointSummary]) -> Iterator[Observation]:
        """Each endpoint with configuration, tags, autoscaling and models; Unobserved where that failed."""
        self._models.forget()
        if self._memory is not None and not self._memory.tells_state:
            self._recall_state(summaries)
        for start in range(0, len(summaries), CHUNK):
            yield from self._chunk(summaries[start : start + CHUNK])

    def _recall_state(self, summaries: Sequence[EndpointSummary]) -> None:
        """Take what a cache tells of endpoints that stand as they were listed; none that a policy may move."""
        self._recall_known(
            [ListedEndpoint(summary.ref.name, summary.created_at, summary.modified_at) for summary in summaries]
        )
        self._stood.clear()
        for summary in summaries:
            known = self._known.get(summary.ref.name)
            if known is not None and known.described and not known.scaled and summary.status == "InService":
                self._hold(summary, known.answer, recalled=True)
                self._stood.add(summary.ref.arn)

    def _chunk(self, summaries: Sequence[EndpointSummary]) -> Iterator[Observation]:
        self._search_listed(
            [summary for summary in summaries if summary.ref.arn not in self._described and not self._moves(summary)]
        )
        with request_threads(self._workers) as pool:
            known = list(pool.map(self._read_configuration, summaries))
            self._search_models(known, summaries)
            shared = self._read_shared(summaries, [fact for fact in known if not isinstance(fact, Unobserved)])
            known = list(pool.map(partial(self._read_scaled_anew, shared), summaries, known))
            joined = list(pool.map(partial(self._join_parts, shared), summaries, known))
        if self._memory is not None:
            self._memory.keep([one for _, one in joined if one is not None])
        yield from (observation for observation, _ in joined)

    def _moves(self, summary: EndpointSummary) -> bool:
        """Whether a policy moved its instances when it was kept: then no search spares its description."""
        known = self._known.get(summary.ref.name)
        return known is not None and known.scaled

    def _search_listed(self, summaries: Sequence[EndpointSummary]) -> None:
        """Search for endpoints that were listed and not looked at since."""
        listed = [
            ListedEndpoint(summary.ref.name, summary.created_at, summary.modified_at)
            for summary in summaries
            if summary.status == "InService"
        ]
        found = self._search.endpoints(listed)
        for summary in summaries:
            if summary.ref.name in found:
                self._hold(summary, found[summary.ref.name], recalled=True)

    def _search_models(self, reads: Sequence[_Read | Unobserved], summaries: Sequence[EndpointSummary]) -> None:
        """Search for the models of these endpoints that are not known yet."""
        named: dict[str, datetime] = {}
        for read in reads:
            if isinstance(read, Unobserved):
                continue
            made = read.configuration.created_at
            for name in {variant.model_name for variant in read.configuration.variants} - {"", *read.models}:
                named[name] = min(made, named.get(name, made))
        wanted = {name: made for name, made in named.items() if not self._models.knows(name)}
        for name, answer in self._search.models(wanted).items():
            self._models.learn(name, answer, summaries[0].ref.account)

    def _read_configuration(self, summary: EndpointSummary) -> _Read | Unobserved:
        """The endpoint and its configuration."""
        try:
            with self._lock:
                answer = self._described.pop(summary.ref.arn, None)
                recalled = answer is not None and summary.ref.arn in self._recalled
            endpoint = answer or self._describe(summary.ref.name)
            name = endpoint.get("EndpointConfigName", "")
            if not name:
                sentence = f"{summary.ref.name} is {endpoint['EndpointStatus']} and names no configuration"
                return Unobserved(summary.ref, Reason(Code.NOT_IN_SERVICE, sentence))
            known = self._known.get(summary.ref.name)
            if known is not None and known.is_of(endpoint["CreationTime"], endpoint["LastModifiedTime"]):
                return _Read(endpoint, known.configuration, known.models, recalled)
            configuration = self._configurations.read(summary.ref.arn, endpoint["LastModifiedTime"], name)
            return _Read(endpoint, configuration, {}, recalled)
        except RightsizerError as error:
            return Unobserved(summary.ref, reason_of(error))

    def _read_scaled_anew(
        self, shared: _Shared, summary: EndpointSummary, read: _Read | Unobserved
    ) -> _Read | Unobserved:
        """What was read, described anew where a policy moves the instances of what was remembered without one."""
        if isinstance(read, Unobserved) or not read.recalled or not shared.scaling:
            return read
        names = [variant["VariantName"] for variant in read.endpoint["ProductionVariants"]]
        scaled = any(shared.scaling.get(variant_resource_id(summary.ref.name, name)) for name in names)
        if scaled:
            self._stood.discard(summary.ref.arn)
        return self._read_configuration(summary) if scaled else read

    def _read_shared(self, summaries: Sequence[EndpointSummary], reads: Sequence[_Read]) -> _Shared:
        notes = []
        scaling: dict[str, tuple[ScalableTarget, ...]] | None = None
        tags = self._tags.read([summary.ref.arn for summary in summaries])
        resources = [
            variant_resource_id(read.endpoint["EndpointName"], variant["VariantName"])
            for read in reads
            for variant in read.endpoint.get("ProductionVariants") or ()
        ]
        try:
            scaling = self._scaling.read(resources)
        except RightsizerError as error:
            notes.append(reason_of(error))
        return _Shared(tags, scaling, tuple(notes))

    def _join_parts(
        self, shared: _Shared, summary: EndpointSummary, read: _Read | Unobserved
    ) -> tuple[Observation, KnownEndpoint | None]:
        """The observation, and what to remember of it."""
        if isinstance(read, Unobserved):
            return read, None
        configuration = read.configuration
        models, notes = dict[str, ModelFacts](), list(shared.notes)
        for name in dict.fromkeys(variant.model_name for variant in configuration.variants if variant.model_name):
            try:
                models[name] = read.models.get(name) or self._models.read(name, summary.ref.account)
            except ReadError as error:
                notes.append(reason_of(error))
        tags = shared.tags[summary.ref.arn]
        if isinstance(tags, Reason):
            notes.append(tags)
        facts = tuple(models.values())
        parts = EndpointParts(summary.ref, read.endpoint, configuration, facts, tags, shared.scaling)
        try:
            endpoint = endpoint_from(parts, tuple(notes))
        except (KeyError, TypeError, ValueError) as error:
            sentence = f"{summary.ref.name}: AWS's description lacks or garbles a field ({error!r})"
            return Unobserved(summary.ref, Reason(Code.READ_FAILED, sentence)), None
        anew = self._memory is not None and not self._memory.tells_state and summary.ref.arn not in self._stood
        fresh = known_endpoint(endpoint, read.endpoint, configuration, models) if anew or not read.models else None
        return self._with_model_size(endpoint, facts), fresh

    def _with_model_size(self, endpoint: Endpoint, models: Sequence[ModelFacts]) -> Endpoint:
        """The endpoint with the size of its model, asked only where the use of its KV cache is known beside it."""
        places = models[0].weights if len(models) == 1 else ()
        if not endpoint.may_show_kv_cache or not places:
            return endpoint
        try:
            return replace(endpoint, model_data_bytes=weights_size(self._session.client("s3"), places))
        except ReadError as error:
            return replace(endpoint, notes=(*endpoint.notes, reason_of(error)))

    def _describe(self, name: str) -> ApiAnswer:
        with translate_read_errors("sagemaker:DescribeEndpoint", f"describing the endpoint {name}"):
            return self._client.describe_endpoint(EndpointName=name)


def _summary(row: Mapping[str, Any]) -> EndpointSummary:
    _, partition, _, region, account, _ = row["EndpointArn"].split(":", 5)
    return EndpointSummary(
        EndpointRef(account, region, row["EndpointName"], partition),
        row["EndpointStatus"],
        row["CreationTime"],
        row["LastModifiedTime"],
    )
