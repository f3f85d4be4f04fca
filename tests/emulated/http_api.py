"""Deploys infra/ingress.yaml in front of a function, and prints the URL of the API and a valid token as one JSON object.

The issuer of the token is a user pool of Cognito: the emulator verifies the tokens of its own pools only.
"""

import json
import os
import sys
from pathlib import Path

import botocore.session

STACK = "lastmile-ingress"
USER, PASSWORD = "publisher", "Publisher-1"


def issue(cognito):
    """The pool, its client, and a token for this client."""
    pool = cognito.create_user_pool(PoolName="publishers")["UserPool"]["Id"]
    flow = "ADMIN_USER_PASSWORD_AUTH"
    client = cognito.create_user_pool_client(UserPoolId=pool, ClientName=USER, ExplicitAuthFlows=[f"ALLOW_{flow}"])
    client = client["UserPoolClient"]["ClientId"]
    cognito.admin_create_user(UserPoolId=pool, Username=USER)
    cognito.admin_set_user_password(UserPoolId=pool, Username=USER, Password=PASSWORD, Permanent=True)
    login = {"USERNAME": USER, "PASSWORD": PASSWORD}
    issued = cognito.admin_initiate_auth(UserPoolId=pool, ClientId=client, AuthFlow=flow, AuthParameters=login)
    return pool, client, issued["AuthenticationResult"]["IdToken"]


def deploy(cloudformation, template, parameters):
    """The URL of the deployed API."""
    listed = [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()]
    cloudformation.create_stack(StackName=STACK, TemplateBody=Path(template).read_text(), Parameters=listed)
    waiter = cloudformation.get_waiter("stack_create_complete")
    waiter.wait(StackName=STACK, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    [stack] = cloudformation.describe_stacks(StackName=STACK)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}["PublishUrl"]


template, function = sys.argv[1:]
session = botocore.session.get_session()
pool, client, token = issue(session.create_client("cognito-idp"))
issuer = f"https://cognito-idp.{os.environ['AWS_REGION']}.amazonaws.com/{pool}"
parameters = {"IngressFunctionArn": function, "JwtIssuer": issuer, "JwtAudience": client}
url = deploy(session.create_client("cloudformation"), template, parameters)
json.dump({"url": url, "token": token}, sys.stdout)
