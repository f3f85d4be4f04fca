"""Deletes what a run has made, and lists what is left."""
import time
from collections import Counter

from botocore.exceptions import ClientError, WaiterError

from .run import Failed, Skipped, expect
from .stacks import resources_of

# SQS answers for a deleted queue for up to a minute.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteQueue.html
GONE_SECONDS = 90


class Gone(Exception):
    """It is as good as deleted."""


RETAINED = {"AWS::SQS::Queue": "queue", "AWS::S3::Bucket": "bucket", "AWS::DynamoDB::Table": "table"}


def delete_stack(run, name):
    cloudformation = run.client("cloudformation")
    cloudformation.delete_stack(StackName=name)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig={"Delay": 2, "MaxAttempts": 600})


def delete_bucket(run, name):
    s3 = run.client("s3")
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=name):
        entries = page.get("Versions", []) + page.get("DeleteMarkers", [])
        objects = [{"Key": entry["Key"], "VersionId": entry["VersionId"]} for entry in entries]
        if objects:
            s3.delete_objects(Bucket=name, Delete={"Objects": objects})
    s3.delete_bucket(Bucket=name)


def delete_table(run, name):
    dynamodb = run.client("dynamodb")
    dynamodb.delete_table(TableName=name)
    dynamodb.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig={"Delay": 2, "MaxAttempts": 150})


def delete_role(run, name):
    iam = run.client("iam")
    for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
        iam.delete_role_policy(RoleName=name, PolicyName=policy)
    iam.delete_role(RoleName=name)


def delete_queue(run, url):
    run.client("sqs").delete_queue(QueueUrl=url)


def delete_key(run, name):
    """KMS deletes a key after a week at the earliest, and bills nothing until then."""
    run.client("kms").schedule_key_deletion(KeyId=name, PendingWindowInDays=7)


def read_key(run, name):
    found = run.client("kms").describe_key(KeyId=name)["KeyMetadata"]
    if found["KeyState"] == "PendingDeletion":
        raise Gone


DELETE = {"stack": delete_stack, "bucket": delete_bucket, "queue": delete_queue, "table": delete_table, "role": delete_role,
          "key": delete_key}
READ = {
    "stack": lambda run, name: run.client("cloudformation").describe_stacks(StackName=name)["Stacks"],
    "bucket": lambda run, name: run.client("s3").list_objects_v2(Bucket=name, MaxKeys=1),
    "queue": lambda run, url: run.client("sqs").get_queue_attributes(QueueUrl=url),
    "table": lambda run, name: run.client("dynamodb").describe_table(TableName=name),
    "role": lambda run, name: run.client("iam").get_role(RoleName=name),
    "key": read_key,
}
# Codes of errors, of each service that READ calls.
MISSING = {"ValidationError", "NoSuchBucket", "AWS.SimpleQueueService.NonExistentQueue", "ResourceNotFoundException", "NoSuchEntity",
           "NotFoundException"}


def is_left(run, kind, name):
    try:
        READ[kind](run, name)
    except Gone:
        return False
    except ClientError as error:
        if error.response["Error"]["Code"] in MISSING:
            return False
        raise
    return True


def resources_to_delete(run, stack):
    """Those of a stack that may stay when it is deleted."""
    if not is_left(run, "stack", stack):
        return []
    return [(RETAINED[kind], name) for kind, name in resources_of(run, stack) if kind in RETAINED]


def everything(run):
    """Kind and name of all that the run has made. Stacks come first: they use the others."""
    retained = [resource for kind, name in run.made if kind == "stack" for resource in resources_to_delete(run, name)]
    return sorted(dict.fromkeys(run.made + retained), key=lambda made: made[0] != "stack")


def try_delete(run, kind, name):
    """Why something could not be deleted, or None."""
    try:
        if is_left(run, kind, name):
            DELETE[kind](run, name)
    except (ClientError, WaiterError) as error:
        return f"{kind} {name}: {error}"
    return None


def counted(deleted):
    return ", ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, count in deleted.items()) or "nothing"


def delete_all(run):
    run.made = everything(run)
    if run.given.keep:
        raise Skipped("--keep was given; the command is below")
    problems = [problem for problem in (try_delete(run, *made) for made in run.made) if problem]
    expect(not problems, "; ".join(problems))
    deleted = Counter(kind for kind, _ in run.made)
    deadline = time.monotonic() + GONE_SECONDS
    while (left := [made for made in run.made if is_left(run, *made)]) and time.monotonic() < deadline:
        time.sleep(2)
    run.made = left
    expect(not left, "left: " + ", ".join(f"{kind} {name}" for kind, name in left))
    kept = "; DynamoDB keeps a backup of the table for 35 days, free of charge" if deleted["table"] else ""
    pending = "; KMS keeps the key for a week, free of charge" if deleted["key"] else ""
    return f"deleted {counted(deleted)}; none is left{kept}{pending}"


def command(run):
    """What deletes the rest."""
    return f"scripts/smoke-aws --region {run.region} --delete " + " ".join(f"{kind}:{name}" for kind, name in run.made)


def delete_named(run):
    """Deletes what `command` lists."""
    run.made = [parsed(text) for text in run.given.delete]
    return delete_all(run)


def parsed(text):
    kind, _, name = text.partition(":")
    if kind not in DELETE or not name:
        raise Failed(f"{text} cannot be deleted: write KIND:NAME, where KIND is one of {', '.join(DELETE)}")
    return kind, name
