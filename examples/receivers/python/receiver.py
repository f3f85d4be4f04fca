"""Receives signed events: verifies the signature, stores each event once, answers, and does the work afterwards.

    WEBHOOK_KEYS='whsec_… whpk_…' python3 receiver.py

WEBHOOK_KEYS has the shared secrets (whsec_) and public keys (whpk_) of the sender, several while one is replaced. PORT is 9190
and EVENTS is the folder `events` unless they say otherwise. Public keys need `pip install cryptography`."""

import base64
import hashlib
import hmac
import os
import queue
import re
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOLERANCE_SECONDS = 5 * 60
# The least of Standard Webhooks. An empty one would accept what anybody signs.
SECRET_MIN_BYTES = 24
PUBLIC_KEY_BYTES = 32
BODY_MAX_BYTES = 2 * 1024 * 1024
EVENTS = Path(os.environ.get("EVENTS", "events"))
work = queue.SimpleQueue()


def handle(body):
    """Your work: it may take its time, and it is done again if this program ends in the middle of it."""
    log(f"handled {body.decode(errors='replace')}")


def log(line):
    """Prints a line with its end in one write: two threads print."""
    print(f"{line}\n", end="", flush=True)


def fail(problem):
    """Ends the program with what is wrong with WEBHOOK_KEYS and what would be right. Never shows a key."""
    raise SystemExit(f"WEBHOOK_KEYS {problem}")


def read_key(text):
    """The scheme of a key, and a function that tells whether it signed a text."""
    prefix, _, encoded = text.partition("_")
    if prefix == "whsk":
        fail("has a private key (whsk_), which only the sender needs: use its public key, whpk_…")
    if prefix not in ("whsec", "whpk"):
        fail("has a key without its prefix: a secret begins with whsec_, a public key with whpk_")
    try:
        key = base64.b64decode(encoded, validate=True)
    except ValueError:
        fail("has a key that is not base64 after its prefix: copy the whole key, also the = at its end")
    return shared_key(key) if prefix == "whsec" else public_key(key)


def shared_key(secret):
    if len(secret) < SECRET_MIN_BYTES:
        fail(f"has a secret of {len(secret)} bytes; it needs at least {SECRET_MIN_BYTES}: `lastmile secret` makes one")
    return "v1", lambda signature, text: hmac.compare_digest(hmac.digest(secret, text, "sha256"), signature)


def public_key(encoded):
    if len(encoded) != PUBLIC_KEY_BYTES:
        fail(f"has a public key of {len(encoded)} bytes; it needs {PUBLIC_KEY_BYTES}: copy the whole whpk_… of the sender")
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        fail("has a public key, which needs a package: pip install cryptography")
    key = Ed25519PublicKey.from_public_bytes(encoded)

    def has_signed(signature, text):
        try:
            key.verify(signature, text)
            return True
        except InvalidSignature:
            return False

    return "v1a", has_signed


def is_valid(headers, body):
    """Whether one of the keys has signed these bytes within the last minutes."""
    message, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    is_time = timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 15
    if not message or not is_time or abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    text = f"{message}.{timestamp}.".encode("latin-1") + body
    for entry in headers.get("webhook-signature", "").split():
        scheme, _, encoded = entry.partition(",")
        try:
            signature = base64.b64decode(encoded, validate=True)
        except ValueError:
            continue
        if any(of == scheme and has_signed(signature, text) for of, has_signed in KEYS):
            return True
    return False


def store(message, body):
    """Stores an event on disk under the id of its message; None if it is there already. In a database: an INSERT with a
    unique key."""
    name = hashlib.sha256(message.encode("latin-1")).hexdigest()
    with tempfile.NamedTemporaryFile(dir=EVENTS, prefix=".") as new:
        new.write(body)
        new.flush()
        os.fsync(new.fileno())
        try:
            os.link(new.name, EVENTS / name)
        except FileExistsError:
            return None
    return name


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self):
        length = self.headers.get("content-length", "")
        if "transfer-encoding" in self.headers or not re.fullmatch("[0-9]{1,9}", length) or int(length) > BODY_MAX_BYTES:
            self.close_connection = True
            return self.answer(413)
        body = self.rfile.read(int(length))
        if not is_valid(self.headers, body):
            log("refused a request: no key of WEBHOOK_KEYS has signed it in the last five minutes")
            return self.answer(401)
        log(f"verified {self.headers['webhook-id']}")
        name = store(self.headers["webhook-id"], body)
        if name is None:
            return self.answer(200)
        work.put(name)
        self.answer(202)

    def answer(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def worker():
    while True:
        name = work.get()
        try:
            handle((EVENTS / name).read_bytes())
            (EVENTS / f"{name}.done").touch()
        except Exception as problem:
            log(f"it is tried again at the next start: {name} {problem}")


KEYS = [read_key(text) for text in os.environ.get("WEBHOOK_KEYS", "").split()]
if not KEYS:
    fail("has no key: set it to the secret of the sender, whsec_…, or its public key, whpk_…")
EVENTS.mkdir(exist_ok=True)
for path in EVENTS.glob("[!.]*"):
    if not path.suffix and not path.with_suffix(".done").exists():
        work.put(path.name)
threading.Thread(target=worker, daemon=True).start()
server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9190"))), Receiver)
log(f"listening on http://127.0.0.1:{server.server_port}/")
server.serve_forever()
