"""Prints the outputs of a stack on the emulated AWS as JSON."""

import json
import sys

import botocore.session

[description] = botocore.session.get_session().create_client("cloudformation").describe_stacks(StackName=sys.argv[1])["Stacks"]
json.dump({output["OutputKey"]: output["OutputValue"] for output in description["Outputs"]}, sys.stdout)
