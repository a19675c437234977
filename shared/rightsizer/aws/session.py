"""The only place that makes clients: one session, standard time-outs, adaptive retries.

botocore's session, not boto3's: the clients are the same, and boto3 would load its resource and transfer machinery at
each cold start, which costs as much as everything else together (`make bench`).
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rightsizer.errors import ReadError, SettingsError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

PRICING_REGIONS: Mapping[str, str] = {"ap": "ap-south-1", "eu": "eu-central-1"}
"""The Price List API answers in three Regions only (botocore endpoints); the nearest to the caller is used."""
OWN_MODELS = Path(__file__).with_name("service_models")
"""Services that botocore has no model of: CloudWatch's Prometheus-compatible API (decision 44)."""

OLDEST_BOTOCORE = "1.39.0"
"""The oldest botocore that is supported: the built functions are tested with it (requirements/lambda-oldest.in).

Of earlier ones 1.37.0 fails at CloudWatch's model (KeyError 'smithy-rpc-v2-cbor'); 1.38.0 and 1.38.23 ask CloudWatch
and the tagging API in CBOR, which the simulated account does not speak, so that nothing could be tried with them.
"""


def botocore_warning(version: str) -> str:
    """Remedy for a botocore older than supported; empty for a good or unknown version."""
    found = _numbers(version)
    if not found or found >= _numbers(OLDEST_BOTOCORE):
        return ""
    return (
        f"botocore {version} of this runtime is older than {OLDEST_BOTOCORE}, the oldest that rightsizer supports, and "
        f"calls of CloudWatch may fail: set the function's runtime management to Auto, or add a layer with botocore "
        f"{OLDEST_BOTOCORE} or newer"
    )


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    return tuple(int(part) for part in match.groups()) if match else ()


@contextmanager
def request_threads(number: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for requests beside each other; an error, or Ctrl-C, waits for none of those that are under way."""
    from concurrent.futures import ThreadPoolExecutor

    pool, is_whole = ThreadPoolExecutor(number), False
    try:
        yield pool
        is_whole = True
    finally:
        pool.shutdown(wait=is_whole, cancel_futures=not is_whole)


def moment(value: Any) -> datetime:
    """A timestamp of an answer, in UTC. Numbers are converted directly: a fortnight of metrics has millions of them."""
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    from botocore.utils import parse_timestamp

    parsed: datetime = parse_timestamp(value)
    return parsed.astimezone(UTC)


class Session:
    """Clients by service name, made once and shared by threads (botocore clients are thread-safe, their making is not).

    `attempts` counts the first call too. Raises ReadError when boto3 is missing or no Region is known.
    """

    def __init__(
        self,
        region: str | None = None,
        profile: str | None = None,
        endpoint_url: str | None = None,
        attempts: int = 8,
    ) -> None:
        try:
            from botocore import __version__ as botocore_version
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError
            from botocore.session import Session as Core
        except ImportError:
            raise SettingsError("botocore is not installed; it comes with: pip install boto3") from None
        try:
            self._session = Core(profile=profile)
            self._session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=moment)
            self._session.get_component("data_loader").search_paths.append(str(OWN_MODELS))
            self._session.get_scoped_config()  # raises when the profile is unknown
            chosen = region or os.environ.get("AWS_REGION")  # botocore itself reads AWS_DEFAULT_REGION alone
            if chosen:
                self._session.set_config_variable("region", chosen)
            self.region: str = self._session.get_config_variable("region") or ""
        except BotoCoreError as error:
            raise SettingsError(f"opening the AWS profile {profile!r}: {error}") from None
        self._endpoint_url = endpoint_url
        self._config = Config(
            retries={"mode": "adaptive" if attempts > 1 else "standard", "total_max_attempts": attempts},
            connect_timeout=5,
            read_timeout=30,
            tcp_keepalive=True,
            max_pool_connections=16,
            user_agent=f"rightsizer Botocore/{botocore_version}",  # botocore's own is put together for each request
        )
        self._clients: dict[tuple[str, str, float | None, bool], Any] = {}
        self._lock = threading.Lock()
        if not self.region:
            raise SettingsError("no AWS Region is set: pass --region or set AWS_REGION")

    def require_known_region(self) -> None:
        """Refuse a Region that this botocore knows no SageMaker in: SettingsError names those that it knows."""
        from difflib import get_close_matches

        partitions = self._session.get_available_partitions()
        known = [name for each in partitions for name in self._session.get_available_regions("sagemaker", each)]
        if self.region not in known:
            near = get_close_matches(self.region, known, n=3)
            meant = f" Did you mean {' or '.join(near)}?" if near else ""
            raise SettingsError(
                f"{self.region!r} is no AWS Region with SageMaker that this boto3 knows.{meant} "
                f"Known are {', '.join(sorted(known))}; a newer one needs a newer boto3"
            )

    def client(
        self, service: str, region: str | None = None, *, seconds: float | None = None, validated: bool = True
    ) -> Any:
        """The client of a service; of the session's Region unless another is named.

        `seconds`: give an answer up after so many and try twice more at most, for what cannot wait. `validated`: False
        where requests are long and written by the program alone, such as 500 queries of ten fields of GetMetricData;
        botocore then does not hold their parameters against its model, which takes longer than to send them.
        """
        key = (service, region or self.region, seconds, validated)
        with self._lock:
            if key not in self._clients:
                self._clients[key] = self._make(*key)
            return self._clients[key]

    def pricing(self) -> Any:
        """The Price List client, in the nearest of the Regions that have one."""
        prefix = self.region.split("-")[0]
        return self.client("pricing", PRICING_REGIONS.get(prefix, "us-east-1"))

    @property
    def partition(self) -> str:
        """Partition of the session's Region, as ARNs name it: ``aws``, ``aws-cn`` or ``aws-us-gov``."""
        return str(self._session.get_partition_for_region(self.region))

    def account(self) -> str:
        """The account that the credentials belong to (STS GetCallerIdentity needs no permission)."""
        from rightsizer.aws.errors import translate_read_errors

        with translate_read_errors("sts:GetCallerIdentity", "asking who calls"):
            return str(self.client("sts").get_caller_identity()["Account"])

    def caller(self) -> tuple[str, str]:
        """The account, and the role or user that calls, by the endpoint URL where one is set."""
        from rightsizer.aws.errors import translate_read_errors

        with translate_read_errors("sts:GetCallerIdentity", "asking who calls"):
            answer = self.client("sts").get_caller_identity()
        arn = answer["Arn"]
        role = arn.rpartition("/")[0] if ":assumed-role/" in arn else arn
        return answer["Account"], f"{role} {self._endpoint_url or ''}".strip()

    def _make(self, service: str, region: str, seconds: float | None, validated: bool) -> Any:
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        config = self._config if validated else self._config.merge(Config(parameter_validation=False))
        if seconds is not None:
            retries = {"mode": "standard", "total_max_attempts": 3}
            config = config.merge(Config(read_timeout=seconds, connect_timeout=2, retries=retries))  # type: ignore[arg-type]
        try:
            return self._session.create_client(
                service, region_name=region, endpoint_url=self._endpoint_url, config=config
            )
        except (BotoCoreError, ValueError) as error:
            raise ReadError(f"making the client of {service} in {region}: {error}") from None
