"""The evaluation queue: pages of endpoints as messages that `intake` reads back."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer import wire
from rightsizer.aws.errors import code_of, text_of
from rightsizer.domain.trigger import LookAt, LookBeyond
from rightsizer.errors import WriteRefusedError

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient


class SqsPages:
    """PageQueue on SQS. A page is far below the message limit: 25 names of at most 63 characters."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def send_page(self, endpoints: Sequence[str], because: str, at: datetime, key: str, fleet: int = 0) -> None:
        """Send one page; WriteRefusedError names the queue when SQS refuses."""
        self._send(LookAt(tuple(endpoints), because, "", at, key, fleet))

    def send_beyond(self, look: LookBeyond) -> None:
        """Ask for a look at groups or jobs; WriteRefusedError names the queue when SQS refuses."""
        self._send(look)

    def _send(self, page: LookAt | LookBeyond) -> None:
        try:
            self._client.send_message(QueueUrl=self._url, MessageBody=wire.dumps(page))
        except ClientError as error:
            raise WriteRefusedError(f"sending a page to {self._url}", code_of(error), text_of(error)) from error
        except BotoCoreError as error:
            raise WriteRefusedError(f"sending a page to {self._url}", type(error).__name__, str(error)) from error
