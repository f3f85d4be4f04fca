"""The life of an event: delivered, retried, dead-lettered, replayed, timed out."""
import json
import uuid
from collections import Counter

from .run import Skipped, event_of, expect, last_words, wait_until
from .subscriptions import NAMESPACE, WAITS_SECONDS, all_of, apply

# Mappings of a new stack begin to poll within a minute; then come a cold start and some polls.
ARRIVAL_SECONDS = 180
# Clocks of the machines of a receiver differ by less.
CLOCKS_SECONDS = 0.1


def new_ids(count):
    return [str(uuid.uuid4()) for _ in range(count)]


def dead_letters(run, topic):
    """The dead letters of a topic, as objects of the bucket."""
    s3, bucket = run.client("s3"), run.outputs["DeadLetterBucketName"]
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{NAMESPACE}/{topic}/")
    keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
    return [json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read()) for key in keys]


def dead_lettered(run, topic, count):
    return wait_until(lambda: dead_letters(run, topic), lambda found: len(found) >= count, ARRIVAL_SECONDS,
                      lambda found: f"{len(found)} of {count} dead letters of {topic}")


def only_reason(letters, event):
    """The reason of the dead letters of this event. There may be two: an event is delivered at least once."""
    found = {(letter["event"]["id"], letter["deadletterProperties"]["deadletterreasoncode"]) for letter in letters}
    expect(len(found) == 1, f"dead letters of {found}")
    [(dead, reason)] = found
    expect(dead == event, f"a dead letter of {dead} instead of {event}")
    return reason


def applied(run):
    done = apply(run, all_of(run), "smoke")
    expect(done.returncode == 0, f"apply: {last_words(done)}")
    return f"{len(all_of(run))} subscriptions"


def examined(run):
    items = json.loads(run.lastmile("doctor", "--stack", run.stack, "--output", "json"))["items"]
    states = Counter(item["state"] for item in items)
    return ", ".join(f"{count} {state}" for state, count in states.items())


def delivered(run):
    """One event by the command line, and one as any program sends it."""
    events = new_ids(2)
    run.publish(f"{NAMESPACE}/delivered", events[:1])
    topic = {"topic": {"DataType": "String", "StringValue": f"{NAMESPACE}/delivered"}}
    body = json.dumps(event_of(run, events[1]))
    run.client("sqs").send_message(QueueUrl=run.outputs["EventsQueueUrl"], MessageBody=body, MessageAttributes=topic)
    run.published += 1
    arrivals = run.receiver.arrived("/ok/delivered", 2, ARRIVAL_SECONDS)
    expect({arrival.event for arrival in arrivals} == set(events), f"published {events}, and got {arrivals}")
    return f"2 events, {len(arrivals)} requests"


def signed(_run):
    raise Skipped("secrets need the layer of the AWS Parameters and Secrets extension (SecretsExtensionLayerArn)")


def retried(run):
    run.publish(f"{NAMESPACE}/retried", new_ids(1))
    arrivals = run.receiver.arrived("/busy/retried", 3, ARRIVAL_SECONDS)
    statuses = [arrival.status for arrival in arrivals]
    # An event may arrive twice: then 200 comes twice.
    expect(statuses[:3] == [503, 503, 200] and set(statuses[3:]) <= {200}, f"responses {statuses} instead of 503, 503, 200")
    waited = [after.at - before.at for before, after in zip(arrivals, arrivals[1:])]
    early = [seconds for seconds, least in zip(waited, WAITS_SECONDS) if seconds < least - CLOCKS_SECONDS]
    expect(not early or len(arrivals) > 3, f"attempts after {waited} s instead of {WAITS_SECONDS} s")
    return f"503, 503, 200; waited {', '.join(f'{seconds:.1f} s' for seconds in waited)}"


def refused(run):
    [event] = new_ids(1)
    run.publish(f"{NAMESPACE}/refused", [event])
    reason = only_reason(dead_lettered(run, "refused", 1), event)
    expect(reason == "UndeliverableDueToHttpBadRequest", f"reason {reason}")
    why = run.lastmile("deadletters", "why", "--stack", run.stack, "--namespace", NAMESPACE, "--topic", "refused")
    expect("400" in why, f"`why` does not name the status: {why}")
    return f"{reason}; {traced(run, event)}"


def traced(run, event):
    """Logs Insights finds a line after some seconds."""
    def read():
        done = run.try_command(run.given.lastmile, "trace", event, "--stack", run.stack, "--yes", "--output", "json")
        return json.loads(done.stdout)["deliveries"] if done.returncode == 0 else []

    def has_letter(deliveries):
        return any((delivery.get("dead_letter") or {}).get("key") for delivery in deliveries)

    wait_until(read, has_letter, ARRIVAL_SECONDS, lambda found: f"`trace` found no dead letter: {found}")
    return "found by `why` and `trace`"


def replayed(run):
    run.receiver.repair("/refuse/refused")
    of_topic = ("--stack", run.stack, "--namespace", NAMESPACE, "--topic", "refused")
    run.lastmile("deadletters", "replay", *of_topic, "--yes", "--wait", "3m")
    statuses = [arrival.status for arrival in run.receiver.arrivals("/refuse/refused")]
    accepted = statuses.count(200)
    expected = [400] * (len(statuses) - accepted) + [200] * accepted
    expect(accepted >= 1 and len(statuses) > accepted and statuses == expected, f"responses {statuses} instead of 400, 200")
    return "400, then 200 once repaired"


def timed_out(run):
    [event] = new_ids(1)
    run.publish(f"{NAMESPACE}/timeout", [event])
    reason = only_reason(dead_lettered(run, "timeout", 1), event)
    expect(reason == "MaxDeliveryAttemptsExceeded", f"reason {reason}")
    return f"{len(run.receiver.arrivals('/hang/timeout'))} requests without a response; {reason}"


def killed(_run):
    raise Skipped("no call of AWS ends a running invocation, and dispatch ends its requests before Lambda would; "
                  "`tests/kill-campaign` kills functions on the emulated AWS")
