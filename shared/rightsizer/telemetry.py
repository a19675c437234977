"""The one Logger and the one Metrics. Doors and adapters take them from here."""

from aws_lambda_powertools import Logger, Metrics

logger = Logger(service="rightsizer")
metrics = Metrics(namespace="rightsizer", service="rightsizer")
