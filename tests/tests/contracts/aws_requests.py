"""Compares requests to AWS targets with those that botocore makes of the same parameters.

Reads cases as JSON from standard input and prints, as JSON, how many of each action are the same, and what differs.
With the argument `errors` it prints the errors that botocore knows of these actions.
"""

import base64
import json
import sys
from collections import Counter
from datetime import datetime
from urllib.parse import parse_qsl, urlsplit

import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

CREDENTIALS = Credentials("AKIDEXAMPLE", "secret", "session-token")
# Each service as botocore names it, its operation, and the member that names the resource.
OPERATIONS = {
    "sqs": ("sqs", "send_message"),
    "events": ("events", "put_events"),
    "lambda": ("lambda", "invoke"),
    "sns": ("sns", "publish"),
    "states": ("stepfunctions", "start_execution"),
    "kinesis": ("kinesis", "put_record"),
    "firehose": ("firehose", "put_record"),
}
# The ends of hosts of the partitions that have another one.
HOSTS = {"aws-cn": "amazonaws.com.cn", "aws-eusc": "amazonaws.eu"}
CLIENTS = {}


class Made(Exception):
    """Carries the request out of the client, in the place of an answer."""


def client(service, region):
    if (service, region) not in CLIENTS:
        session = botocore.session.Session()
        session.set_credentials("AKIDEXAMPLE", "secret", "session-token")
        config = Config(retries={"total_max_attempts": 1})
        made = session.create_client(service, region_name=region, config=config)
        # Kinesis also has a host for each account, which botocore chooses by the ARN. Both take the same requests.
        made._ruleset_resolver._param_definitions.pop("StreamARN", None)

        def capture(request, **_):
            raise Made(request)

        made.meta.events.register("before-send", capture)
        CLIENTS[service, region] = made
    return CLIENTS[service, region]


def attributes(stated):
    binary = lambda of: {**of, "BinaryValue": base64.b64decode(of["BinaryValue"])} if "BinaryValue" in of else of
    return {name: binary(of) for name, of in stated.items()}


def members(service, arn, parameters, payload):
    """The arguments of the operation."""
    _, _, _, region, account, resource = arn.split(":", 5)
    parameters = dict(parameters)
    for name in ("MessageAttributes", "MessageSystemAttributes"):
        if name in parameters:
            parameters[name] = attributes(parameters[name])
    if "Time" in parameters:
        parameters["Time"] = datetime.fromisoformat(parameters["Time"])
    if service == "sqs":
        hosts = HOSTS.get(arn.split(":")[1], "amazonaws.com")
        url = f"https://sqs.{region}.{hosts}/{account}/{resource}"
        return {"QueueUrl": url, "MessageBody": payload.decode(), **parameters}
    if service == "events":
        return {"Entries": [{"EventBusName": arn, "Detail": payload.decode(), **parameters}]}
    if service == "lambda":
        return {"FunctionName": arn, "Payload": payload, **parameters}
    if service == "sns":
        return {"TopicArn": arn, "Message": payload.decode(), **parameters}
    if service == "states":
        return {"stateMachineArn": arn, "input": payload.decode(), **parameters}
    if service == "kinesis":
        return {"StreamARN": arn, "Data": payload, **parameters}
    name = resource.split("/", 1)[1]
    return {"DeliveryStreamName": name, "Record": {"Data": payload}, **parameters}


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def of_protocol(headers):
    """The headers that the protocol of the service decides, and not its client, its retries or its signature."""
    others = {"x-amz-date", "x-amz-security-token", "x-amz-content-sha256"}
    named = {name.lower(): text(value) for name, value in headers.items()}
    is_own = lambda name: name == "content-type" or (name.startswith("x-amz") and name not in others)
    return {name: value for name, value in named.items() if is_own(name)}


def shape(method, url, headers, body):
    url, headers = urlsplit(url), of_protocol(headers)
    body = body.encode() if isinstance(body, str) else bytes(body or b"")
    kind = headers.get("content-type", "")
    if "json" in kind:
        body = json.loads(body)
    elif "form" in kind:
        body = sorted(parse_qsl(body.decode(), keep_blank_values=True))
    query = sorted(parse_qsl(url.query, keep_blank_values=True))
    return {
        "method": method,
        "host": url.netloc,
        "path": url.path,
        "query": query,
        "headers": headers,
        "body": body.decode("latin-1") if isinstance(body, bytes) else body,
    }


def signature(service, region, request):
    """The signature that botocore makes of our request."""
    authorization = request["signature"]["authorization"]
    names = authorization.split("SignedHeaders=")[1].split(",")[0].split(";")
    url = urlsplit(request["url"])
    sent = {**request["headers"], **request["signature"], "host": url.netloc}
    signed = AWSRequest(
        request["method"],
        url._replace(query="").geturl(),
        headers={name: sent[name] for name in names},
        data=base64.b64decode(request["body"]),
        params=parse_qsl(url.query, keep_blank_values=True),
    )
    signed.context["timestamp"] = request["signature"]["x-amz-date"]
    auth = SigV4Auth(CREDENTIALS, service, region)
    made = auth.signature(auth.string_to_sign(signed, auth.canonical_request(signed)), signed)
    return made if authorization.endswith(f"Signature={made}") else f"{made}, not {authorization}"


def difference(case):
    service, region = case["arn"].split(":")[2:4]
    of_sdk, operation = OPERATIONS[service]
    arguments = members(service, case["arn"], case["parameters"], base64.b64decode(case["payload"]))
    try:
        getattr(client(of_sdk, region), operation)(**arguments)
        raise AssertionError("nothing was sent")
    except Made as made:
        request = made.args[0]
    expected = shape(request.method, request.url, request.headers, request.body)
    own = case["request"]
    found = shape(own["method"], own["url"], own["headers"], base64.b64decode(own["body"]))
    differing = {name: [expected[name], found[name]] for name in expected if expected[name] != found[name]}
    signed = signature(service, region, own)
    if " " in signed:
        differing["signature"] = signed
    return differing


def errors():
    """The codes of the errors of all operations, each with its service."""
    found = set()
    for of_sdk, operation in OPERATIONS.values():
        model = client(of_sdk, "eu-west-1").meta.service_model
        name = client(of_sdk, "eu-west-1").meta.method_to_api_mapping[operation]
        found |= {(of_sdk, shape.error_code) for shape in model.operation_model(name).error_shapes}
    return sorted(found)


if sys.argv[1:] == ["errors"]:
    json.dump(errors(), sys.stdout)
    sys.exit()
same, different = Counter(), []
for case in json.load(sys.stdin):
    found = difference(case)
    if found:
        different.append({"arn": case["arn"], "parameters": case["parameters"], "differs": found})
    else:
        same[case["arn"].split(":")[2]] += 1
json.dump({"same": same, "different": different}, sys.stdout)
