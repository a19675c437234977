"""The bare handler that `bench.doors` compares with: a door's calls, made by plain boto3, and nothing else.

The file that `CALLS` names holds the calls in the order in which the door made them. Clients are made the ordinary way,
one for each service and Region, on first use. Answers are read whole; an error of AWS that the door got too is no
failure.
"""

import os
import pickle
from typing import Any

import boto3
import urllib3
from botocore import xform_name
from botocore.exceptions import ClientError

clients: dict[tuple[str, str], Any] = {}
pool = urllib3.PoolManager()


def call_aws(service: str, region: str, operation: str, parameters: dict[str, Any]) -> None:
    """One operation of AWS, with the body of its answer where that is a stream."""
    if (service, region) not in clients:
        clients[service, region] = boto3.client(service, region_name=region)  # type: ignore[call-overload]
    try:
        answer = getattr(clients[service, region], xform_name(operation))(**parameters)
    except ClientError:
        return
    if "Body" in answer:
        answer["Body"].read()


def lambda_handler(event: Any, context: Any) -> dict[str, int]:
    """Make the calls, and say how many they were."""
    with open(os.environ["CALLS"], "rb") as file:
        calls = pickle.load(file)
    for kind, *what in calls:
        if kind == "aws":
            call_aws(*what)
        else:
            method, url, options = what
            pool.request(method, url, **options)
    return {"calls": len(calls)}
