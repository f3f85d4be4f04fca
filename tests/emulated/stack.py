"""Finishes a deployment on the emulated AWS and prints the stack's outputs as JSON.

CloudFormation turns the text of a parameter into the number a property wants. The emulator forgets that for the
concurrency of an event source mapping, and its poller then stops at the comparison. Setting the number again through
the Lambda API is what the template already says.
"""

import json
import sys

import botocore.session


def mend_concurrency(functions):
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
mend_concurrency(session.create_client("lambda"))
json.dump(outputs(session.create_client("cloudformation"), sys.argv[1]), sys.stdout)
