"""Publishing over HTTP: with a signature of IAM, and without one."""
import json
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

from .delivery import ARRIVAL_SECONDS, new_ids
from .receiver import status_of
from .run import event_of, expect, wait_until
from .subscriptions import NAMESPACE

TOPIC = "ingress"
DENIED, ACCEPTED = 403, 202


def post(run, event, is_signed):
    """The status of the response of the ingress to this event."""
    url = f"{run.outputs['IngressUrl'].rstrip('/')}/topics/{NAMESPACE}/{TOPIC}"
    body = json.dumps(event_of(run, event)).encode()
    request = AWSRequest("POST", url, data=body, headers={"Content-Type": "application/cloudevents+json"})
    if is_signed:
        credentials = run.session.get_credentials().get_frozen_credentials()
        SigV4Auth(credentials, "lambda", run.region).add_auth(request)
    host, path = urlsplit(url).netloc, urlsplit(url).path
    # An emulated AWS has all hosts at its own address.
    address = f"{run.endpoint.rstrip('/')}{path}" if run.endpoint else url
    return status_of(address, body, {**dict(request.headers.items()), "Host": host})


def published(run):
    [stranger, event] = new_ids(2)
    status = post(run, stranger, is_signed=False)
    expect(status == DENIED, f"a request without a signature: status {status} instead of {DENIED}")
    wait_until(lambda: post(run, event, is_signed=True), lambda status: status == ACCEPTED, ARRIVAL_SECONDS,
               lambda status: f"a signed request: status {status} instead of {ACCEPTED}")
    run.published += 1
    arrivals = run.receiver.arrived(f"/ok/{TOPIC}", 1, ARRIVAL_SECONDS)
    expect({arrival.event for arrival in arrivals} == {event}, f"published {event}, and got {arrivals}")
    return f"without a signature {DENIED}; with one {ACCEPTED}, and delivered"
