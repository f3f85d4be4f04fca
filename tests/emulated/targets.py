"""Makes a resource of each service that AWS targets are of, and says what has arrived there.

`make` prints the ARNs by service. `received` prints the payloads by service. A topic, a bus and a function pass them on to queues,
whose messages count as theirs.
"""

import base64
import io
import json
import sys
import zipfile

import botocore.session

ACCOUNT, REGION, NAME = "000000000000", "us-east-1", "target"
FORWARD = """
import boto3, json, os
def handler(event, context):
    if event.get("type") == "fails":
        raise ValueError("this event fails")
    queue = boto3.client("sqs", endpoint_url=os.environ["ENDPOINT"], region_name="us-east-1",
                         aws_access_key_id="test", aws_secret_access_key="test")
    queue.send_message(QueueUrl=os.environ["QUEUE"], MessageBody=json.dumps(event))
"""
MACHINE = {"StartAt": "End", "States": {"End": {"Type": "Pass", "End": True}}}
session = botocore.session.get_session()
CLIENTS = {}


def client(service):
    return CLIENTS.setdefault(service, session.create_client(service))


def arn(service, resource):
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}"


def queue(name):
    anybody = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [anybody]})
    return client("sqs").create_queue(QueueName=name, Attributes={"Policy": policy})["QueueUrl"]


def make_role():
    """The role of the function, the machine and the delivery stream."""
    anybody = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    document = lambda statement: json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    made = client("iam").create_role(RoleName=NAME, AssumeRolePolicyDocument=document(anybody))
    client("iam").put_role_policy(RoleName=NAME, PolicyName=NAME, PolicyDocument=document(everything))
    return made["Role"]["Arn"]


def make(endpoint):
    role = make_role()
    queues = {name: queue(f"{NAME}-{name}") for name in ("sqs", "sns", "events", "lambda")}
    topic = client("sns").create_topic(Name=NAME)["TopicArn"]
    raw = {"RawMessageDelivery": "true"}
    client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn("sqs", f"{NAME}-sns"), Attributes=raw)
    client("events").create_event_bus(Name=NAME)
    pattern = json.dumps({"detail-type": ["arrives"]})
    client("events").put_rule(Name=NAME, EventBusName=NAME, EventPattern=pattern)
    target = {"Id": "1", "Arn": arn("sqs", f"{NAME}-events"), "InputPath": "$.detail"}
    client("events").put_targets(Rule=NAME, EventBusName=NAME, Targets=[target])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.py", FORWARD)
    client("lambda").create_function(
        FunctionName=NAME,
        Runtime="python3.12",
        Handler="index.handler",
        Role=role,
        Code={"ZipFile": packed.getvalue()},
        Environment={"Variables": {"QUEUE": queues["lambda"], "ENDPOINT": endpoint}},
    )
    client("stepfunctions").create_state_machine(name=NAME, definition=json.dumps(MACHINE), roleArn=role)
    client("kinesis").create_stream(StreamName=NAME, ShardCount=1)
    client("s3").create_bucket(Bucket=NAME)
    destination = {"RoleARN": role, "BucketARN": f"arn:aws:s3:::{NAME}"}
    client("firehose").create_delivery_stream(DeliveryStreamName=NAME, ExtendedS3DestinationConfiguration=destination)
    return {
        "sqs": arn("sqs", f"{NAME}-sqs"),
        "sns": topic,
        "events": arn("events", f"event-bus/{NAME}"),
        "lambda": arn("lambda", f"function:{NAME}"),
        "states": arn("states", f"stateMachine:{NAME}"),
        "kinesis": arn("kinesis", f"stream/{NAME}"),
        "firehose": arn("firehose", f"deliverystream/{NAME}"),
    }


def of_queue(name):
    messages = client("sqs").receive_message(
        QueueUrl=queue(f"{NAME}-{name}"), MaxNumberOfMessages=10, VisibilityTimeout=0
    )
    return [message["Body"] for message in messages.get("Messages", [])]


def of_machine():
    states = client("stepfunctions")
    started = states.list_executions(stateMachineArn=arn("states", f"stateMachine:{NAME}"))["executions"]
    return [states.describe_execution(executionArn=one["executionArn"])["input"] for one in started]


def of_stream():
    kinesis = client("kinesis")
    shard = kinesis.describe_stream(StreamName=NAME)["StreamDescription"]["Shards"][0]["ShardId"]
    iterator = kinesis.get_shard_iterator(StreamName=NAME, ShardId=shard, ShardIteratorType="TRIM_HORIZON")
    records = kinesis.get_records(ShardIterator=iterator["ShardIterator"])["Records"]
    return [record["Data"].decode() for record in records]


def of_bucket():
    s3 = client("s3")
    keys = [one["Key"] for one in s3.list_objects_v2(Bucket=NAME).get("Contents", [])]
    return [s3.get_object(Bucket=NAME, Key=key)["Body"].read().decode() for key in keys]


def received():
    queues = {name: of_queue(name) for name in ("sqs", "sns", "events", "lambda")}
    return {**queues, "states": of_machine(), "kinesis": of_stream(), "firehose": of_bucket()}


print(json.dumps(make(sys.argv[2]) if sys.argv[1] == "make" else received()))
