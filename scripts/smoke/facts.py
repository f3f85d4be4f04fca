"""What the code relies on that SQS and Lambda do."""
import json

from .delivery import ARRIVAL_SECONDS
from .log import lines_about, texts
from .run import Skipped, expect, wait_until


def make_queue(run, name, **attributes):
    sqs = run.client("sqs")
    url = sqs.create_queue(QueueName=f"{run.stack}-{name}", Attributes=attributes)["QueueUrl"]
    run.made.append(("queue", url))
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return url, arn


def receive(run, url):
    ask = {"WaitTimeSeconds": 1, "VisibilityTimeout": 1, "MessageSystemAttributeNames": ["All"]}
    return run.client("sqs").receive_message(QueueUrl=url, **ask).get("Messages", [])


def redriven(run):
    """A message that a queue gives up names that queue, and a standard queue accepts a message group."""
    target, target_arn = make_queue(run, "gives-up-to")
    policy = json.dumps({"deadLetterTargetArn": target_arn, "maxReceiveCount": 1})
    source, source_arn = make_queue(run, "gives-up", RedrivePolicy=policy)
    run.client("sqs").send_message(QueueUrl=source, MessageBody="smoke", MessageGroupId="group")
    wait_until(lambda: receive(run, source), bool, ARRIVAL_SECONDS, lambda _: "no message")

    def given_up():
        # The second receive moves the message.
        receive(run, source)
        return receive(run, target)

    [message] = wait_until(given_up, bool, ARRIVAL_SECONDS, lambda _: "no message in the dead-letter queue")
    attributes = message["Attributes"]
    named = attributes.get("DeadLetterQueueSourceArn")
    expect(named == source_arn, f"DeadLetterQueueSourceArn is {named} instead of {source_arn}")
    expect(attributes.get("MessageGroupId") == "group", f"MessageGroupId is {attributes.get('MessageGroupId')} instead of group")
    return "`DeadLetterQueueSourceArn` and `MessageGroupId` are kept"


def log_format(run):
    """Each line is one JSON object, those of Lambda too."""
    ours = lines_about(run, "delivery.delivered")
    has_all = all({"timestamp", "level", "delivery_id"} <= set(line) for line in ours)
    expect(ours and has_all, f"{len(ours)} lines `delivery.delivered`: {ours[:1]}")
    if run.endpoint:
        raise Skipped("the emulated AWS writes its own lines as text; those of the function are JSON")
    other = [text for text in texts(run) if not text.startswith("{")]
    expect(not other, f"{len(other)} lines are not JSON: {other[:1]}")
    return f"{len(texts(run))} lines, all of them JSON"
