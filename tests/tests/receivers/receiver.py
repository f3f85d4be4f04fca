"""A subscriber with the CloudEvents SDK for Python: prints its port, then responds to each request with what it
received and what the SDK understood. Exits when its standard input is closed. WEBHOOK_SECRET verifies signatures.

It consents to deliveries: to a validation event that Event Grid's own SDK can read, and to OPTIONS from the origin
events.example.com, at 100 requests per minute."""

import base64
import json
import os
import sys
import threading
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from azure.eventgrid import EventGridEvent, SystemEventNames
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from standardwebhooks.webhooks import Webhook

WEBHOOK = Webhook(os.environ["WEBHOOK_SECRET"])


def plain(value):
    """A value of the SDK as JSON; bytes as an object with `$base64`."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return {"$base64": base64.b64encode(value).decode()}
    return value


def understood(headers, body):
    """The attributes and the data as the SDK reads them, or why it refuses."""
    try:
        event = from_http_event(HTTPMessage(headers=headers, body=body))
    except Exception as problem:
        return {"$refused": f"{type(problem).__name__}: {problem}"}
    seen = {name: plain(value) for name, value in event.get_attributes().items()}
    return {**seen, "data": plain(event.get_data())}


def signature(headers, body):
    """`verified`, `unsigned`, or the error."""
    if not any(name.lower() == "webhook-signature" for name in headers):
        return "unsigned"
    try:
        WEBHOOK.verify(body, headers, json_parse=False)
        return "verified"
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"


def validation(headers, body):
    """The response to a validation event; None for any other."""
    if headers.get("aeg-event-type") != "SubscriptionValidation":
        return None
    (event,) = [EventGridEvent.from_dict(event) for event in json.loads(body)]
    if event.event_type != SystemEventNames.EventGridSubscriptionValidationEventName:
        return None
    return {"validationResponse": event.data["validationCode"]}


class Subscriber(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"] or 0))
        headers = dict(self.headers.items())
        report = validation(self.headers, body) or {
            "headers": self.headers.items(),
            "body": base64.b64encode(body).decode(),
            "event": understood(headers, body),
            "signature": signature(headers, body),
        }
        answer = json.dumps(report).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_OPTIONS(self):
        self.send_response(200)
        self.send_header("allow", "POST")
        if self.headers["webhook-request-origin"] == "events.example.com":
            self.send_header("WebHook-Allowed-Origin", "events.example.com")
            self.send_header("WebHook-Allowed-Rate", "100")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Subscriber)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
