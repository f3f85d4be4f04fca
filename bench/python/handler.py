"""The handler a team would write in Python: Powertools' batch processor, one requests session."""

import os

import requests
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

TARGET_URL = os.environ["TARGET_URL"]
processor = BatchProcessor(event_type=EventType.SQS)
session = requests.Session()


def deliver(record: SQSRecord) -> None:
    headers = {"content-type": "application/cloudevents+json"}
    session.post(TARGET_URL, data=record.body.encode(), headers=headers, timeout=30).raise_for_status()


def handler(event, context):
    return process_partial_response(event=event, record_handler=deliver, processor=processor, context=context)
