"""Permissions: the role of a namespace, the leading keys of the table, and the conditional writes of dead letters."""
import json
import re
import uuid
from pathlib import Path
from types import SimpleNamespace

from botocore.exceptions import ClientError

from .delivery import ARRIVAL_SECONDS
from .run import expect, last_words, wait_until
from .subscriptions import apply, subscription

MANUAL = Path(__file__).resolve().parents[2] / "docs/reference/storage.md"
# The namespace of the policy in the manual.
OWN, OTHER = "shop", "not-of-the-role"
DENIED = {"AccessDenied", "AccessDeniedException"}


def documented_policy(bucket):
    """The policy under "A role for one namespace" in the manual, for this bucket."""
    section = MANUAL.read_text().split("## A role for one namespace")[1]
    return re.search(r"```json\n(.*?)```", section, re.DOTALL)[1].replace("CONFIG_BUCKET", bucket)


def session_of(run, name, policy):
    """Credentials of a session of a new role with this policy."""
    iam, role = run.client("iam"), f"{run.stack}-{name}"
    trusted = {"Effect": "Allow", "Principal": {"AWS": run.account}, "Action": "sts:AssumeRole"}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [trusted]})
    run.made.append(("role", role))
    arn = iam.create_role(RoleName=role, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    iam.put_role_policy(RoleName=role, PolicyName="smoke", PolicyDocument=policy)

    def assume():
        try:
            return run.client("sts").assume_role(RoleArn=arn, RoleSessionName="smoke")["Credentials"]
        except ClientError as error:
            if error.response["Error"]["Code"] not in DENIED:
                raise
            return None

    # A new role can be assumed after some seconds.
    given = wait_until(assume, bool, ARRIVAL_SECONDS,
                       lambda _: f"no session of {role}; the caller needs sts:AssumeRole, and must not be the root user;")
    return SimpleNamespace(access_key=given["AccessKeyId"], secret_key=given["SecretAccessKey"], token=given["SessionToken"])


def client_of(run, service, credentials):
    return run.client(service, aws_access_key_id=credentials.access_key, aws_secret_access_key=credentials.secret_key,
                      aws_session_token=credentials.token)


def code_of(call, **parameters):
    """The error code of a call, or None."""
    try:
        call(**parameters)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return None


def namespace_role(run):
    role = session_of(run, "namespace", documented_policy(run.outputs["ConfigBucketName"]))
    def apply_to(namespace):
        return apply(run, [subscription(namespace, "orders", f"{run.receiver.url}/ok/{namespace}")], "smoke-role", role)

    wait_until(lambda: apply_to(OWN), lambda done: done.returncode == 0, ARRIVAL_SECONDS,
               lambda done: f"apply to its own namespace: {last_words(done)}")
    other = apply_to(OTHER)
    is_denied = other.returncode != 0 and "denied" in (other.stdout + other.stderr).lower()
    expect(is_denied, f"apply to another namespace was not denied: {last_words(other)}")
    return f"applies `{OWN}`, and is denied another namespace"


def conditions(run):
    """A role that may do more than the conditions of AWS leave to it."""
    letters, table = f"{run.outputs['DeadLetterBucketArn']}/*", run.outputs["TableArn"]
    only_news = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["@news"]}, "Null": {"dynamodb:LeadingKeys": "false"}}
    statements = [
        {"Effect": "Allow", "Action": "s3:PutObject", "Resource": letters},
        {"Effect": "Allow", "Action": "dynamodb:UpdateItem", "Resource": table, "Condition": only_news},
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def conditional_writes(run):
    role = session_of(run, "conditions", conditions(run))
    put = client_of(run, "s3", role).put_object
    letter = {"Bucket": run.outputs["DeadLetterBucketName"], "Key": f"smoke/{uuid.uuid4()}.json", "Body": b"{}"}
    wait_until(lambda: code_of(put, **letter, IfNoneMatch="*"), lambda code: code in (None, "PreconditionFailed"), ARRIVAL_SECONDS,
               lambda code: f"a first write with If-None-Match: {code}")
    codes = [code_of(put, **letter), code_of(put, **letter, IfNoneMatch="*")]
    expect(codes[0] in DENIED, f"a write without If-None-Match: {codes[0]} instead of AccessDenied")
    expect(codes[1] == "PreconditionFailed", f"a second write with If-None-Match: {codes[1]} instead of PreconditionFailed")
    return f"no dead letter is replaced; {leading_keys(run, role)}"


def leading_keys(run, role):
    update = client_of(run, "dynamodb", role).update_item
    table = run.outputs["TableName"]
    codes = [code_of(update, TableName=table, Key={"pk": {"S": key}, "sk": {"S": "smoke"}}) for key in ("@news", "@smoke")]
    expect(codes[0] is None and codes[1] in DENIED, f"updates of @news and @smoke: {codes} instead of None and AccessDenied")
    return "a role for `@news` writes no other item"
