"""Makes calls with the permissions of roles and prints the error code of each, or null, as a JSON list.

A call is [role, "service.operation", parameters], in JSON. A role is one of the stack, by its name in the template, or
else one with this name that may do everything as far as it is up to its own policy. A call with the parameter `InClear`
does not come over TLS; one with `InFunction`, the name of a function in the template, is made by its code.
"""

import json
import sys
from contextlib import suppress
from functools import cache

import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

EVERYTHING = {"Effect": "Allow", "Action": "*", "Resource": "*"}
ANYBODY = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}

session = botocore.session.get_session()


def document(statement):
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@cache
def of_stack():
    resources = session.create_client("cloudformation").describe_stack_resources(StackName=sys.argv[1])["StackResources"]
    return {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in resources}


@cache
def role_arn(name):
    iam = session.create_client("iam")
    if name not in of_stack():
        with suppress(iam.exceptions.EntityAlreadyExistsException):
            iam.create_role(RoleName=name, AssumeRolePolicyDocument=document(ANYBODY))
        iam.put_role_policy(RoleName=name, PolicyName="everything", PolicyDocument=document(EVERYTHING))
    return iam.get_role(RoleName=of_stack().get(name, name))["Role"]["Arn"]


@cache
def credentials(role, function):
    name = of_stack()[function] if function else "permissions"
    return session.create_client("sts").assume_role(RoleArn=role_arn(role), RoleSessionName=name)["Credentials"]


@cache
def client(role, service, in_clear, function):
    assumed = credentials(role, function)
    made = session.create_client(
        service,
        aws_access_key_id=assumed["AccessKeyId"],
        aws_secret_access_key=assumed["SecretAccessKey"],
        aws_session_token=assumed["SessionToken"],
        config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )
    if in_clear:
        made.meta.events.register("before-sign", lambda request, **_: request.headers.add_header("x-forwarded-proto", "http"))
    return made


def error_code(role, operation, parameters):
    service, _, operation = operation.partition(".")
    caller = client(role, service, parameters.pop("InClear", False), parameters.pop("InFunction", None))
    try:
        getattr(caller, operation)(**parameters)
    except ClientError as error:
        return error.response["Error"]["Code"]


json.dump([error_code(*call) for call in json.loads(sys.argv[2])], sys.stdout)
