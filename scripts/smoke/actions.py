"""Which permissions of the functions a run has used, by the steps that use them.

The test of the script compares them with the calls that the emulated AWS has seen.
"""
import re
from pathlib import Path

TABLE = Path(__file__).resolve().parents[2] / "tests/tests/dependencies/aws_calls.rs"
BY_STEP = {
    "deliver": ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "s3:GetObject",
                "s3:ListBucketVersions", "dynamodb:Query", "logs:CreateLogStream", "logs:PutLogEvents"],
    "retry": ["sqs:SendMessage"],
    "dead letter": ["s3:PutObject", "s3:PutObjectTagging"],
    "timeout": ["dynamodb:GetItem"],
    "maximum rate": ["dynamodb:UpdateItem"],
    "key": ["kms:Decrypt", "kms:GenerateDataKey"],
}


def all_permissions():
    """The actions in the table that a test compares with the code and the template."""
    table = TABLE.read_text().split("const PERMISSIONS")[1].split("];")[0]
    return re.findall(r'^    \("(\w+:\w+)"', table, re.MULTILINE)


def used(results):
    passed = {result.name for result in results if result.state == "ok"}
    return sorted({action for step, actions in BY_STEP.items() if step in passed for action in actions})


def unused(results):
    return sorted(set(all_permissions()) - set(used(results)))
