"""The log of dispatch."""
import json


def texts(run):
    pages = run.client("logs").get_paginator("filter_log_events").paginate(logGroupName=run.outputs["DispatchLogGroupName"])
    return [event["message"].strip() for page in pages for event in page["events"]]


def lines_about(run, message):
    """The lines of the function with this message. An emulated AWS writes lines of its own as text."""
    lines = [json.loads(text) for text in texts(run) if text.startswith("{")]
    return [line for line in lines if line.get("message") == message]
