"""A key of one's own: the stack changes to it, and events are still delivered and stored."""
import json

from .delivery import dead_lettered, new_ids, only_reason
from .run import expect
from .stacks import sam_deploy
from .subscriptions import NAMESPACE

TOPIC = "key"


def policy(run):
    """As docs/guides/deploy.md has it: the account decides who uses the key, and CloudWatch Logs may."""
    partition = run.outputs["DispatchFunctionArn"].split(":")[1]
    groups = f"arn:{partition}:logs:{run.region}:{run.account}:log-group:/aws/lambda/{run.stack}-*"
    use = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"]
    statements = [
        {"Effect": "Allow", "Principal": {"AWS": f"arn:{partition}:iam::{run.account}:root"}, "Action": "kms:*", "Resource": "*"},
        {"Effect": "Allow", "Principal": {"Service": f"logs.{run.region}.amazonaws.com"}, "Action": use, "Resource": "*",
         "Condition": {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}}},
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def make_key(run):
    made = run.client("kms").create_key(Policy=policy(run), Description=f"Smoke run {run.stack}")["KeyMetadata"]
    run.made.append(("key", made["KeyId"]))
    return made["Arn"]


def changed(run):
    key = make_key(run)
    sam_deploy(run, f"KmsKeyArn={key}")
    queue = {"QueueUrl": run.outputs["EventsQueueUrl"], "AttributeNames": ["KmsMasterKeyId"]}
    used = run.client("sqs").get_queue_attributes(**queue).get("Attributes", {}).get("KmsMasterKeyId")
    expect(used == key, f"the events queue has the key {used} instead of {key}")
    [event] = new_ids(1)
    run.publish(f"{NAMESPACE}/{TOPIC}", [event])
    reason = only_reason(dead_lettered(run, TOPIC, 1), event)
    stored(run, key)
    return f"the stack has a key; {reason}"


def stored(run, key):
    """The dead letter is encrypted by the key. An emulated AWS encrypts nothing."""
    if run.endpoint:
        return
    s3, bucket = run.client("s3"), run.outputs["DeadLetterBucketName"]
    [letter, *_] = s3.list_objects_v2(Bucket=bucket, Prefix=f"{NAMESPACE}/{TOPIC}/")["Contents"]
    used = s3.head_object(Bucket=bucket, Key=letter["Key"]).get("SSEKMSKeyId")
    expect(used == key, f"the dead letter has the key {used} instead of {key}")
