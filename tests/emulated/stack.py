"""Finishes a deployment on the emulated AWS and prints the stack's outputs as JSON.

CloudFormation converts the text of a parameter to the number that a property needs. The emulator does not do that for
the concurrency of an event source mapping, and its poller then fails at a comparison. This script sets the same
number again through the Lambda API.
"""

import json
import sys

import botocore.session


def fix_concurrency(functions):
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        concurrency = mapping.get("ScalingConfig", {}).get("MaximumConcurrency")
        if concurrency is not None:
            functions.update_event_source_mapping(
                UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": int(concurrency)}
            )


def outputs(cloudformation, stack):
    [description] = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in description["Outputs"]}


session = botocore.session.get_session()
fix_concurrency(session.create_client("lambda"))
json.dump(outputs(session.create_client("cloudformation"), sys.argv[1]), sys.stdout)
