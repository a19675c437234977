"""The count of AWS calls: it runs on a small account, and says which budget does not hold."""

from collections import Counter

import pytest

from bench.calls import main, over


def test_the_calls_of_a_small_account_are_within_the_budgets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--endpoints", "2"]) == 0
    assert (
        "sagemaker:DescribeEndpoint                                    2     1.00        1" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ({"sagemaker:DescribeModel": 54, "s3:GetObject": 30, "dynamodb:GetItem": 33, "cloudwatch:GetMetricData": 99},
         {}, []),
        ({"sagemaker:DescribeModel": 55}, {}, ["reads of the account: 55 calls, above 54"]),
        ({"dynamodb:GetItem": 118}, {}, ["all calls of the first evaluation but for metrics: 118 calls, above 117"]),
        ({}, {"dynamodb:GetItem": 99, "sqs:SendMessageBatch": 12}, []),
        ({}, {"dynamodb:GetItem": 99, "sqs:SendMessageBatch": 13},
         ["all calls of the second evaluation: 112 calls, above 111"]),
        ({}, {"cloudwatch:GetMetricData": 9, "s3:PutObject": 2, "sqs:SendMessage": 9}, []),
        ({}, {"cloudwatch:GetMetricData": 9, "s3:PutObject": 3},
         ["metrics and daily usage of the second evaluation: 12 calls, above 11"]),
    ],
)  # fmt: skip
def test_each_budget_is_told_when_it_does_not_hold(
    first: dict[str, int], second: dict[str, int], told: list[str]
) -> None:
    assert over(10, Counter(first), Counter(second)) == told
