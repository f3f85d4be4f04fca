"""Publishes with every client in Python, each as its own documentation shows it, and prints a line for each way:
client, version, mode, the ids of the events, and the error if there is one.

PLAIN and KEYED are addresses of `lastmile dev` without and with a key, KEY is that key.
"""

import datetime
import importlib.metadata
import json
import os

import boto3
import requests
from azure.core.credentials import AzureKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.core.messaging import CloudEvent as AzureCloudEvent
from azure.eventgrid import EventGridEvent, EventGridPublisherClient, SystemEventNames, generate_sas
from cloudevents.core.bindings.http import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent

PLAIN, KEYED, KEY = os.environ["PLAIN"], os.environ["KEYED"], os.environ["KEY"]
QUEUE = os.environ["EVENTS_QUEUE_URL"]
number = 0


def new_id():
    global number
    number += 1
    return f"python-{number}."


def attempt(client, mode, events, publish):
    ids = [new_id() for _ in range(events)]
    line = {"client": f"PyPI `{client}`", "version": importlib.metadata.version(client), "mode": mode, "ids": ids}
    try:
        publish(ids)
    except Exception as error:  # whatever a client raises is its result
        line["error"] = f"{type(error).__name__}: {error}"
    print(json.dumps(line), flush=True)


# azure-eventgrid

key = AzureKeyCredential(KEY)


def grid_event(id):
    return EventGridEvent(id=id, subject="orders/7", event_type="order.created", data={"orderId": 7}, data_version="1")


def azure_event(id):
    return AzureCloudEvent(id=id, source="/shop", type="order.created", data={"orderId": 7})


def basic(endpoint, credential=key):
    return EventGridPublisherClient(endpoint, credential)


def by_token(ids):
    endpoint = KEYED + "/api/events"
    expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=5)
    token = AzureSasCredential(generate_sas(endpoint, KEY, expires))
    basic(endpoint, token).send(azure_event(ids[0]))


def with_another_key(ids):
    try:
        basic(KEYED + "/api/events", AzureKeyCredential("another")).send(azure_event("refused"))
    except ClientAuthenticationError:
        return
    raise AssertionError("another key was accepted")


namespace = EventGridPublisherClient(KEYED, key, namespace_topic="orders")
EVENTGRID = "azure-eventgrid"
attempt(EVENTGRID, "`EventGridEvent`, `/api/events`, key", 1,
        lambda ids: basic(KEYED + "/api/events").send(grid_event(ids[0])))
attempt(EVENTGRID, "list of `EventGridEvent`, host only, key", 2,
        lambda ids: basic(KEYED).send([grid_event(id) for id in ids]))
attempt(EVENTGRID, "`CloudEvent`, `/topics/shop/orders/`, key", 1,
        lambda ids: basic(KEYED + "/topics/shop/orders/").send(azure_event(ids[0])))
attempt(EVENTGRID, "list of `CloudEvent`, host only, key", 2,
        lambda ids: basic(KEYED).send([azure_event(id) for id in ids]))
attempt(EVENTGRID, "custom schema, `/api/events`, key", 1,
        lambda ids: basic(KEYED + "/api/events").send({"order": ids[0]}))
attempt(EVENTGRID, "`CloudEvent`, `/api/events`, SAS token", 1, by_token)
attempt(EVENTGRID, "`CloudEvent`, namespace topic, key", 1, lambda ids: namespace.send(azure_event(ids[0])))
attempt(EVENTGRID, "list of `CloudEvent`, namespace topic, key", 2,
        lambda ids: namespace.send([azure_event(id) for id in ids]))
attempt(EVENTGRID, "another key: `ClientAuthenticationError`", 0, with_another_key)

# What Azure does before it delivers to a webhook: neither request has the key.


def validated(ids):
    event = EventGridEvent(subject="", event_type=SystemEventNames.EventGridSubscriptionValidationEventName,
                           data={"validationCode": "512d38b6", "validationUrl": "https://example.com/"}, data_version="2")
    members = {"id": str(event.id), "topic": "/subscriptions/x", "subject": event.subject, "eventType": event.event_type,
               "eventTime": str(event.event_time), "data": event.data, "dataVersion": event.data_version,
               "metadataVersion": "1"}
    headers = {"aeg-event-type": "SubscriptionValidation"}
    answer = requests.post(KEYED + "/topics/shop/orders", headers=headers, json=[members], timeout=30)
    assert answer.status_code == 200 and answer.json() == {"validationResponse": "512d38b6"}, answer.text


def consented(ids):
    for origin, status in [("eventgrid.azure.net", 200), ("evil.example.com", 403)]:
        headers = {"WebHook-Request-Origin": origin, "WebHook-Request-Rate": "120"}
        answer = requests.options(KEYED + "/topics/shop/orders", headers=headers, timeout=30)
        granted = answer.headers.get("WebHook-Allowed-Origin")
        assert answer.status_code == status and granted == (origin if status == 200 else None), answer.headers


def by_other_methods(ids):
    for address, allowed in [(KEYED, "POST, OPTIONS"), (PLAIN, "POST")]:
        for method in ["GET", "HEAD", "PUT"]:
            answer = requests.request(method, address + "/topics/shop/orders", timeout=30)
            assert (answer.status_code, answer.headers.get("Allow")) == (405, allowed), (method, answer.headers)


attempt(EVENTGRID, "validation event of a webhook: `validationResponse`", 0, validated)
attempt("requests", "CloudEvents handshake (OPTIONS), granted to `eventgrid.azure.net` only", 0, consented)
attempt("requests", "GET, HEAD and PUT: 405 with `Allow`", 0, by_other_methods)

# cloudevents


def event(id):
    attributes = {"specversion": "1.0", "id": id, "source": "/shop", "type": "order.created",
                  "datacontenttype": "application/json", "subject": "Größe €"}
    return CloudEvent(attributes, {"orderId": 7})


def post(url, message):
    requests.post(url, headers=message.headers, data=message.body, timeout=30).raise_for_status()


def batched(ids):
    bodies = [to_structured_event(event(id)).body for id in ids]
    headers = {"content-type": "application/cloudevents-batch+json"}
    answer = requests.post(PLAIN + "/topics/shop/orders", headers=headers, data=b"[" + b",".join(bodies) + b"]", timeout=30)
    answer.raise_for_status()


def marked(ids):
    message = to_structured_event(event(ids[0]))
    body = b"\xef\xbb\xbf" + message.body
    requests.post(PLAIN + "/topics/shop/orders", headers=message.headers, data=body, timeout=30).raise_for_status()


CLOUDEVENTS = "cloudevents"
attempt(CLOUDEVENTS, "binary", 1, lambda ids: post(PLAIN + "/topics/shop/orders", to_binary_event(event(ids[0]))))
attempt(CLOUDEVENTS, "structured, after a byte order mark", 1, marked)
attempt(CLOUDEVENTS, "structured", 1, lambda ids: post(PLAIN + "/topics/shop/orders", to_structured_event(event(ids[0]))))
attempt(CLOUDEVENTS, "batched (the caller builds the array)", 2, batched)

# What Knative sets K_SINK for: a source sends binary CloudEvents to the address as it is.


def from_a_source(ids):
    sink = os.environ["K_SINK"]
    headers = {"Content-Type": "application/json", "Ce-Specversion": "1.0", "Ce-Id": ids[0], "Ce-Source": "/shop",
               "Ce-Type": "order.created", "Ce-Time": "2026-11-20T07:03:00Z"}
    requests.post(sink, headers=headers, data=json.dumps({"orderId": 7}), timeout=30).raise_for_status()


os.environ["K_SINK"] = PLAIN
attempt("requests", "Knative event source: binary to `K_SINK`, host only", 1, from_a_source)

# boto3

sqs = boto3.client("sqs")


def send(body, topic=None):
    attributes = {"topic": {"DataType": "String", "StringValue": topic}} if topic else {}
    sqs.send_message(QueueUrl=QUEUE, MessageBody=body, MessageAttributes=attributes)


def put_events_entry(id):
    return json.dumps({"Source": "com.example.shop", "DetailType": "Order Created", "Resources": [],
                       "Detail": json.dumps({"orderId": id}), "EventBusName": "default"})


BOTO3 = "boto3"
attempt(BOTO3, "SQS `send_message`, entry of `put-events`", 1, lambda ids: send(put_events_entry(ids[0]), "shop/orders"))
attempt(BOTO3, "SQS `send_message`, JSON without a topic", 1, lambda ids: send(json.dumps({"orderId": ids[0]})))
attempt(BOTO3, "SQS `send_message`, text (`input: opaque`)", 1, lambda ids: send(f"order {ids[0]}", "shop/texts"))
