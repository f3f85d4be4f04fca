"""An endpoint behind AWS: it takes requests with a signature that botocore makes of the same request, and no others.

`GET /seen` says for each service how many requests it took, and how many it refused. A refusal repeats the credentials
of the request, as those of AWS do. A path that begins with /moved is answered by a redirect to /elsewhere.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

CREDENTIALS = Credentials(
    os.environ["PEER_ACCESS_KEY_ID"], os.environ["PEER_SECRET_ACCESS_KEY"], os.environ["PEER_SESSION_TOKEN"]
)
# What the client of HTTP adds, and the signature itself.
UNSIGNED = {"authorization", "content-length", "user-agent", "accept", "accept-encoding", "connection"}
# Without them, a success of these services is none.
RECEIPTS = {"sqs": '{"MessageId": "m"}', "sns": "<MessageId>m</MessageId>"}
LOCK = threading.Lock()
SEEN = {"taken": {}, "refused": 0, "moved": 0, "elsewhere": 0, "problems": []}


def problem(method, target, headers, body):
    """Why a request is refused, if it is."""
    scheme, _, fields = headers.get("authorization", "").partition(" ")
    if scheme != "AWS4-HMAC-SHA256":
        return "no signature", None
    fields = dict(field.strip().split("=", 1) for field in fields.split(","))
    _, date, region, service, _ = fields["Credential"].split("/")
    signed = fields["SignedHeaders"].split(";")
    unsigned = set(headers) - set(signed) - UNSIGNED
    if unsigned:
        return f"not signed: {unsigned}", service
    url = urlsplit(f"http://{headers['host']}{target}")
    request = AWSRequest(
        method,
        url._replace(query="").geturl(),
        headers={name: headers[name] for name in signed},
        data=body,
        params=parse_qsl(url.query, keep_blank_values=True),
    )
    request.context["timestamp"] = headers["x-amz-date"]
    auth = SigV4Auth(CREDENTIALS, service, region)
    if auth.scope(request) != fields["Credential"] or not headers["x-amz-date"].startswith(date):
        return "another scope", service
    if headers.get("x-amz-security-token") != CREDENTIALS.token:
        return "another token", service
    is_unsigned = headers.get("x-amz-content-sha256") == "UNSIGNED-PAYLOAD"
    if is_unsigned != (service == "vpc-lattice-svcs"):
        return "a body is signed for all but VPC Lattice", service
    canonical = auth.canonical_request(request)
    if auth.signature(auth.string_to_sign(request, canonical), request) != fields["Signature"]:
        return f"another signature of {canonical}", service
    return None, service


class Peer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, **headers):
        body = body.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        with LOCK:
            self.answer(200, json.dumps(SEEN))

    def do_POST(self):
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", "0")))
        with LOCK:
            if self.path.startswith("/elsewhere"):
                SEEN["elsewhere"] += 1
            why, service = problem(self.command, self.path, headers, body)
            if why:
                SEEN["refused"] += 1
                SEEN["problems"].append(why)
                return self.answer(403, json.dumps({"refused": headers}))
            if self.path.startswith("/moved"):
                SEEN["moved"] += 1
                return self.answer(307, "", location="/elsewhere")
            SEEN["taken"][service] = SEEN["taken"].get(service, 0) + 1
            self.answer(200, RECEIPTS.get(service, "welcome"))


server = ThreadingHTTPServer(("127.0.0.1", 0), Peer)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
# Ended with its standard input.
sys.stdin.read()
