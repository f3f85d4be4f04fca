"""Runs the emulated AWS with IAM enforced: a function may call what the role that the template gives it allows, and the
policies of queues and buckets hold.

The emulator decides about most of that itself. Added here is what AWS does and it does not:

- A batch of messages is allowed by the action of a single one.
- `s3:if-none-match`, `s3:if-match` and `s3:ObjectCreationOperation` say how an object is written.
- `aws:PrincipalArn` of a session is the ARN of its role.
- A tag of a new object needs a permission of its own.
- A missing object is told from a refusal only to those who may list its key.
- `sts:IdentityTokenAudience` says for whom a token is that AWS gives about the caller.
- `dynamodb:LeadingKeys` are the partition keys of the items that a request names. Only those of single items and of
  queries are found here: with another request, the key is missing.
- `lambda:GetAccountSettings` needs a permission.
- A condition may have a value of a mapping.
- A function may not reserve the last 100 concurrent executions of the account, or any in a smaller account. CloudFormation
  reserves what a template asks for.
- A saved query can be made and deleted.
- CloudFormation converts the text of a parameter to the number that the concurrency of an event source mapping is.
- `lambda:SourceFunctionArn` is there in the requests of a function's code, whose session has the name of the function.
- Requests come over TLS, unless their header `x-forwarded-proto` says otherwise: here they need none.

Which calls were allowed and which were not is written to the file that the argument names, a line of JSON each. Calls by
the account itself, which are everybody's but the functions' and the tests' of permissions, are in no line.
"""

import contextvars
import json
import os
import re
import sys
from urllib.parse import parse_qsl

os.environ["AUTH"] = "true"

from ministack import app
from ministack.core import iam_actions, iam_evaluator
from ministack.core.responses import error_response_json
from ministack.services import lambda_svc, sts
from ministack.services.cloudformation import changesets, engine, handlers, provisioners, stacks

IDENTITY = "sts:GetWebIdentityToken"
TAGS_OBJECT = "s3:PutObjectTagging"
# The partition key of a query.
QUERIED = re.compile(r"pk = (:\w+)")
# Lambda keeps so many concurrent executions for functions that reserve none.
UNRESERVED = 100
CREATES_OBJECT = {"PUT": lambda query: "uploadId" not in query, "POST": lambda query: "uploadId" in query}


def single(action):
    """The action that allows a batch.
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsqs.html"""
    return action.removesuffix("Batch") if action and action.startswith("sqs:") else action


def write_keys(action, query, headers, method):
    """The condition keys of a write that the emulator does not have.
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes-enforce.html"""
    if action != "s3:PutObject":
        return {}
    creates = CREATES_OBJECT.get(method, lambda _: True)(query or {})
    keys = {"s3:ObjectCreationOperation": str(creates).lower()}
    for name in ("if-none-match", "if-match"):
        if name in (headers or {}):
            keys[f"s3:{name}"] = headers[name]
    return keys


def role_of(principal):
    """The ARN of the role whose session this is, else the principal.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-principalarn"""
    account, _, resource = principal.removeprefix("arn:aws:sts::").partition(":assumed-role/")
    return f"arn:aws:iam::{account}:role/{resource.split('/')[0]}" if resource else principal


def source_function(principal):
    """The ARN of the function whose code this is.
    https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html"""
    function = lambda_svc._functions.get(principal.rpartition("/")[2])
    return function["config"]["FunctionArn"] if function else None


def leading_keys(body):
    """The partition keys of the items that a request names.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html"""
    request = json.loads(body or b"{}")
    queried = QUERIED.match(request.get("KeyConditionExpression", ""))
    if queried:
        key = request["ExpressionAttributeValues"][queried[1]]
    else:
        key = request.get("Key", request.get("Item", {})).get("pk")
    return {"dynamodb:LeadingKeys": [key["S"]]} if key else {}


def bucket_and_key(path):
    bucket, _, key = path.lstrip("/").partition("/")
    return f"arn:aws:s3:::{bucket}", key


class Calls:
    """What was allowed and what was not; each call to a resource once, of an object's the bucket counts."""

    def __init__(self, path):
        self.file = open(path, "w", buffering=1)
        self.known = set()

    def note(self, access_key, action, resource, denied, partitions=()):
        session = sts._sessions.get(access_key)
        if session is None:
            return
        if not denied and resource.startswith("arn:aws:s3:::"):
            resource = resource.split("/")[0]
        call = (session["Arn"], action, resource, not denied, tuple(partitions))
        if call not in self.known:
            self.known.add(call)
            names = ("principal", "action", "resource", "allowed", "partitions")
            self.file.write(json.dumps(dict(zip(names, call))) + "\n")


calls = Calls(sys.argv.pop(1))
method_of_request = contextvars.ContextVar("method", default="")
audiences_of_request = contextvars.ContextVar("audiences", default=())
emulated_action, emulated_keys = iam_actions.extract_iam_action, iam_actions.s3_service_context
emulated_items = iam_actions.dynamodb_service_context
emulated_key, emulated_enforce = iam_evaluator._resolve_condition_key, iam_evaluator.enforce
emulated_s3, emulated_app = app.SERVICE_HANDLERS["s3"], app.app
emulated_concurrency, emulated_conditions = lambda_svc._put_function_concurrency, engine._evaluate_conditions


def extract_iam_action(service, method, path, headers, body, query):
    if service == "lambda" and path.endswith("/account-settings"):
        return "lambda:GetAccountSettings"
    action = emulated_action(service, method, path, headers, body, query)
    if action == IDENTITY:
        form = parse_qsl((body or b"").decode())
        audiences_of_request.set([value for name, value in form if name.startswith("Audience.member.")])
    return single(action)


def s3_service_context(action, query, path="", headers=None):
    return {**emulated_keys(action, query, path, headers), **write_keys(action, query, headers, method_of_request.get())}


def dynamodb_service_context(body):
    return {**emulated_items(body), **leading_keys(body)}


def condition_key(key, context):
    if key.lower() == "lambda:sourcefunctionarn":
        return source_function(context.principal_arn)
    value = emulated_key(key, context)
    return role_of(value) if key.lower() == "aws:principalarn" else value


def enforce(access_key, action, service, region, resource_arn="*", service_context=None):
    if action == IDENTITY:
        service_context = {**(service_context or {}), "sts:identitytokenaudience": audiences_of_request.get()}
    denied = emulated_enforce(access_key, action, service, region, resource_arn, service_context)
    partitions = (service_context or {}).get("dynamodb:LeadingKeys", ())
    calls.note(access_key, action, resource_arn, denied, partitions)
    return denied


async def s3(method, path, headers, body, query):
    """Answers a request for a missing object, and for one with tags, as S3 does."""
    bucket, key = bucket_and_key(path)
    caller, region = app.extract_access_key_id(headers, query), app.extract_region(headers)
    if method == "PUT" and "x-amz-tagging" in headers:
        denied = enforce(caller, TAGS_OBJECT, "s3", region, f"{bucket}/{key}")
        if denied:
            return iam_actions.access_denied_response("s3", TAGS_OBJECT, denied.principal_arn, "", headers=headers)
    answer = await emulated_s3(method, path, headers, body, query)
    if method != "GET" or b"NoSuchKey" not in answer[2][:200]:
        return answer
    denied = emulated_enforce(caller, "s3:ListBucket", "s3", region, bucket, {"s3:prefix": key})
    if not denied:
        return answer
    calls.note(caller, "s3:ListBucket", f"{bucket}/{key}", denied)
    return iam_actions.access_denied_response("s3", "s3:ListBucket", denied.principal_arn, "", headers=headers)


def with_number(properties):
    concurrency = properties.get("ScalingConfig", {}).get("MaximumConcurrency")
    return {**properties, "ScalingConfig": {"MaximumConcurrency": int(concurrency)}} if concurrency else properties


def with_mapped(value, mappings, parameters):
    """A condition with the values of mappings in their places."""
    if isinstance(value, list):
        return [with_mapped(each, mappings, parameters) for each in value]
    if not isinstance(value, dict):
        return value
    if "Fn::FindInMap" in value:
        keys = [parameters[key["Ref"]]["Value"] if isinstance(key, dict) else key for key in value["Fn::FindInMap"]]
        return mappings[keys[0]][keys[1]][keys[2]]
    return {name: with_mapped(each, mappings, parameters) for name, each in value.items()}


def evaluate_conditions(template, parameters):
    conditions = with_mapped(template.get("Conditions", {}), template.get("Mappings", {}), parameters)
    return emulated_conditions({**template, "Conditions": conditions}, parameters)


def put_function_concurrency(name, request):
    """https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html"""
    limit = lambda_svc._ACCOUNT_CONCURRENCY_CAP
    others = (function for other, function in lambda_svc._functions.items() if other != name)
    reserved = sum(function.get("concurrency") or 0 for function in others) + request["ReservedConcurrentExecutions"]
    least = min(UNRESERVED, limit)
    if limit - reserved < least:
        problem = f"decreases account's UnreservedConcurrentExecution below its minimum value of [{least}]."
        return error_response_json("InvalidParameterValueException", f"Specified ReservedConcurrentExecutions for function {problem}", 400)
    return emulated_concurrency(name, request)


def with_reservation(change):
    """Creates or updates a function, and reserves what its template asks for."""
    def changed(*arguments, **options):
        made = change(*arguments, **options)
        properties = next(of for of in reversed(arguments) if isinstance(of, dict))
        wanted = properties.get("ReservedConcurrentExecutions")
        if wanted is not None:
            name = made[0] if isinstance(made, tuple) else made
            status, _, body = put_function_concurrency(name, {"ReservedConcurrentExecutions": int(wanted)})
            if status >= 400:
                raise ValueError(json.loads(body)["message"])
        return made
    return changed


async def over_tls(scope, receive, send):
    if scope["type"] == "http":
        method_of_request.set(scope["method"])
        if all(name != b"x-forwarded-proto" for name, _ in scope["headers"]):
            scope = {**scope, "headers": [*scope["headers"], (b"x-forwarded-proto", b"https")]}
    await emulated_app(scope, receive, send)


provisioners._RESOURCE_HANDLERS["AWS::Logs::QueryDefinition"] = {
    "create": lambda logical_id, properties, stack: (f"{stack}-{logical_id}", {}),
    "update": lambda physical_id, before, after, stack: (physical_id, {}),
    "delete": lambda physical_id, properties: None,
}
mappings = provisioners._RESOURCE_HANDLERS["AWS::Lambda::EventSourceMapping"]
provisioners._RESOURCE_HANDLERS["AWS::Lambda::EventSourceMapping"] = {
    **mappings,
    "create": lambda logical_id, properties, stack: mappings["create"](logical_id, with_number(properties), stack),
    "update": lambda physical_id, before, after, stack: mappings["update"](physical_id, before, with_number(after), stack),
}
functions = provisioners._RESOURCE_HANDLERS["AWS::Lambda::Function"]
provisioners._RESOURCE_HANDLERS["AWS::Lambda::Function"] = {
    **functions,
    "create": with_reservation(functions["create"]),
    "update": with_reservation(functions["update"]),
}
lambda_svc._put_function_concurrency = put_function_concurrency
for module in (changesets, engine, handlers, stacks):
    module._evaluate_conditions = evaluate_conditions
iam_actions.extract_iam_action, iam_actions.s3_service_context = extract_iam_action, s3_service_context
iam_actions.dynamodb_service_context = dynamodb_service_context
iam_evaluator._resolve_condition_key, iam_evaluator.enforce = condition_key, enforce
app.SERVICE_HANDLERS["s3"], app.app = s3, over_tls
app.main()
