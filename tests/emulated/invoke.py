"""Invokes a function with an event, in JSON, and prints its response."""

import sys

import botocore.session

name, event = sys.argv[1:]
answer = botocore.session.get_session().create_client("lambda").invoke(FunctionName=name, Payload=event)
body = answer["Payload"].read().decode()
if "FunctionError" in answer:
    sys.exit(f"{answer['FunctionError']}: {body}")
print(body)
