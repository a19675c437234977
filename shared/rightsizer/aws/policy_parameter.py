"""The policy document in SSM Parameter Store: one read, kept for a minute, by the one parameter that the stack names.

Sources: SSM API Reference, GetParameter (ParameterNotFound) and PutParameter (Overwrite, Tier); Systems Manager user
guide, "Managing parameter tiers": a standard parameter holds 4 KB and is free, an advanced one holds 8 KB for USD 0.05
a month and never goes back to standard.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from rightsizer.aws.errors import code_of, translate_read_errors, translate_write_errors
from rightsizer.domain.policy_document import PolicyDocument
from rightsizer.errors import PermissionMissingError, ReadError, RightsizerError
from rightsizer.policy_reader import lost_document, read_policy
from rightsizer.telemetry import logger

if TYPE_CHECKING:
    from types_boto3_ssm import SSMClient

KEPT = timedelta(minutes=1)
"""How long the document is kept: as long as it may take until a change of it is in force."""
OUTAGE = timedelta(minutes=15)
"""How long the last one that was read holds where Parameter Store does not answer."""
STANDARD, ADVANCED = 4096, 8192
"""Bytes that a parameter of each tier may hold."""


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """The text of the document as Parameter Store has it."""

    text: str
    version: int
    """Counts up with each change of the parameter."""
    modified_at: datetime | None = None


def fetch_policy(client: "SSMClient", name: str) -> StoredPolicy | None:
    """The document that is stored under the name; None where there is no such parameter. Raises ReadError."""
    with translate_read_errors("ssm:GetParameter", f"reading the policy document {name}"):
        try:
            found = client.get_parameter(Name=name)["Parameter"]
        except ClientError as error:
            if code_of(error) in ("ParameterNotFound", "ParameterVersionNotFound"):
                return None
            raise
    return StoredPolicy(found.get("Value", ""), int(found.get("Version", 0)), found.get("LastModifiedDate"))


def put_policy(client: "SSMClient", name: str, text: str) -> int:
    """Store the document, in place of what was there; its new version. Raises WriteRefusedError, ReadError.

    Parameter Store chooses the tier by the size (Intelligent-Tiering): asked for the standard tier it would refuse to
    write over an advanced parameter.
    """
    about = "The policy document of rightsizer: docs/policy.md"
    with translate_write_errors("ssm:PutParameter", f"storing the policy document {name}"):
        answer = client.put_parameter(
            Name=name,
            Value=text,
            Type="String",
            Overwrite=True,
            Description=about,
            Tier="Intelligent-Tiering",
        )
    return int(answer.get("Version", 0))


class PolicyParameter:
    """Reads the document for the functions. `name` is empty in a stack without one: then nothing is asked of AWS."""

    def __init__(self, client: "Callable[[], SSMClient]", name: str, clock: Callable[[], datetime]) -> None:
        self._client, self._name, self._clock = client, name, clock
        self._known = PolicyDocument()
        self._text: str | None = None
        self._asked_at: datetime | None = None
        self._read_at: datetime | None = None

    def document(self) -> PolicyDocument:
        """The document, at most `KEPT` old. Total: one that cannot be read holds everything (`lost_document`).

        The same object as before where its text is the same.
        """
        now = self._clock()
        if not self._name or (self._asked_at is not None and now - self._asked_at < KEPT):
            return self._known
        self._asked_at = now
        try:
            policy = fetch_policy(self._client(), self._name)
        except PermissionMissingError as error:
            return self._lose(str(error))
        except RightsizerError as error:
            if self._read_at is not None and now - self._read_at < OUTAGE:
                logger.warning("the policy document could not be read, the last one holds", extra={"why": str(error)})
                return self._known
            return self._lose(str(error))
        if policy is None:
            from rightsizer.domain.plan import terminal_command

            stores = terminal_command("policy put FILE", self._client().meta.region_name)
            remedy = f"put it back with `{stores}`, or deploy with PolicyParameter empty"
            return self._lose(f"the parameter {self._name}, which the stack names, does not exist; {remedy}")
        self._read_at = now
        if policy.text != self._text:
            self._text, self._known = policy.text, read_policy(policy.text)
        return self._known

    def _lose(self, why: str) -> PolicyDocument:
        lost = lost_document(f"policy document: {why}")
        if lost != self._known:
            self._text, self._known = None, lost
        return self._known


def tier_of(text: str) -> str:
    """The tier that a document of this size needs; ReadError where no tier holds it."""
    size = len(text.encode())
    if size > ADVANCED:
        raise ReadError(f"the policy document has {size:,} bytes, and a parameter holds {ADVANCED:,} at most")
    return "Advanced" if size > STANDARD else "Standard"
