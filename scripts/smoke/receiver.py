"""Makes the receiver and reads what arrived there."""
import base64
import json
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from boto3.dynamodb.conditions import Key

from . import receiver_function
from .run import expect, wait_until
from .stacks import create, outputs_of

HERE = Path(__file__).parent
# Lambda keeps 100 executions that no function reserves; the application and the account need some besides.
RESERVING_NEEDS = 250
RESERVED = 50
# A new URL answers 403 for some seconds.
PUBLIC_SECONDS = 60


class Arrival(NamedTuple):
    at: float
    event: str
    status: int


class Receiver:
    """An endpoint and the table that it writes."""

    def __init__(self, url, table):
        self.url = url.rstrip("/")
        self.table = table

    def arrivals(self, path):
        """The requests to a path, in the order in which they came."""
        found, page = [], {"LastEvaluatedKey": None}
        while "LastEvaluatedKey" in page:
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]} if page["LastEvaluatedKey"] else {}
            page = self.table.query(KeyConditionExpression=Key("path").eq(path), ConsistentRead=True, **start)
            found += page["Items"]
        return [Arrival(float(item["at"].split()[0]), item["event"], int(item["status"])) for item in found]

    def arrived(self, path, count, seconds):
        """Waits for this many requests."""
        return wait_until(lambda: self.arrivals(path), lambda found: len(found) >= count, seconds,
                          lambda found: f"{len(found)} of {count} requests to {path}")

    def repair(self, path):
        """From now on this path accepts what it refused."""
        self.table.put_item(Item={"path": "repaired", "at": path})


def serve_locally(table):
    """Serves the function of the receiver on a free port of this machine, and returns the URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
            answer = receiver_function.handler({"rawPath": self.path, "body": body}, None, table)
            try:
                self.send_response(answer["statusCode"])
                self.send_header("content-length", "0")
                self.end_headers()
            except BrokenPipeError:
                # The product gave the attempt up, as it should where the receiver hangs.
                pass

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def template():
    code = (HERE / "receiver_function.py").read_text()
    return (HERE / "receiver.yaml").read_text().replace('"CODE"', json.dumps(code))


def status_of(url, body=b"{}", headers=None):
    """The status of the response to a POST."""
    request = urllib.request.Request(url, data=body, headers=headers or {}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=PUBLIC_SECONDS) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def check_function(run, name):
    """Invokes the function as its URL does, which only AWS can reach, to tell its faults from those of the URL."""
    request = {"rawPath": "/ok/invoked", "body": base64.b64encode(b"{}").decode(), "isBase64Encoded": True}
    answer = run.client("lambda").invoke(FunctionName=name, Payload=json.dumps(request))["Payload"].read().decode()
    expect(json.loads(answer).get("statusCode") == 200, f"the function of the receiver answers {answer}")


def make(run):
    """Makes the stack of the receiver."""
    reserved = RESERVED if run.unreserved >= RESERVING_NEEDS else 0
    create(run, run.receiver_stack, template(), {"Reserved": str(reserved)})
    outputs = outputs_of(run, run.receiver_stack)
    check_function(run, outputs["FunctionName"])
    table = run.session.resource("dynamodb").Table(outputs["TableName"])
    url = serve_locally(table) if run.given.local_receiver else outputs["Url"]
    run.receiver = Receiver(url, table)
    expect(len(run.receiver.arrivals("/ok/invoked")) == 1, "the function of the receiver did not write what arrived")
    # A cold start would count as slow, and what is slow is attempted twice.
    wait_until(lambda: status_of(f"{run.receiver.url}/ok/first"), lambda status: status == 200, PUBLIC_SECONDS,
               lambda status: f"the receiver answers {status}")
    return f"{'on this machine' if run.given.local_receiver else 'a function with a URL'}, {reserved or 'no'} reserved executions"
