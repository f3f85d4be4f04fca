"""The receiver of a smoke run: an HTTP endpoint that responds by path, and keeps each request in a table.

It runs as a function with a URL (receiver.yaml), or inside the script (`serve_locally` in receiver.py), so both do the same.
"""
import base64
import json
import os
import time
import uuid

import boto3

# Longer than any attempt of a run waits. A function is billed for it.
HANG_SECONDS = 10
TABLE = boto3.resource("dynamodb").Table(os.environ["TABLE_NAME"]) if "TABLE_NAME" in os.environ else None


def requests_before(table, path, event):
    """How many requests with this event the path had before this one."""
    counter = table.update_item(Key={"path": "counts", "at": f"{path} {event}"}, UpdateExpression="ADD requests :one",
                                ExpressionAttributeValues={":one": 1}, ReturnValues="UPDATED_NEW")
    return int(counter["Attributes"]["requests"]) - 1


def status_of(table, path, event):
    kind = path.split("/")[1]
    if kind == "busy":
        return 503 if requests_before(table, path, event) < 2 else 200
    if kind == "refuse":
        return 200 if "Item" in table.get_item(Key={"path": "repaired", "at": path}, ConsistentRead=True) else 400
    return {"ok": 200, "hang": 200}.get(kind, 404)


def body_of(request):
    body = request.get("body") or "{}"
    return base64.b64decode(body) if request.get("isBase64Encoded") else body


def handler(request, _context, table=TABLE):
    """Handles the event of a function URL, payload format 2.0."""
    came = time.time()
    path = request["rawPath"]
    event = json.loads(body_of(request)).get("id", "none")
    status = status_of(table, path, event)
    table.put_item(Item={"path": path, "at": f"{came:.3f} {uuid.uuid4()}", "event": event, "status": status})
    if path.startswith("/hang/"):
        time.sleep(HANG_SECONDS)
    return {"statusCode": status, "body": ""}
