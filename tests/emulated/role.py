"""Makes a role with a policy and prints the credentials of a session of it, in JSON. Anybody may assume it."""

import json
import sys

import botocore.session

ANYBODY = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}

name, policy = sys.argv[1:]
session = botocore.session.get_session()
iam = session.create_client("iam")
trust = json.dumps({"Version": "2012-10-17", "Statement": [ANYBODY]})
arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
iam.put_role_policy(RoleName=name, PolicyName=name, PolicyDocument=policy)
credentials = session.create_client("sts").assume_role(RoleArn=arn, RoleSessionName=name)["Credentials"]
json.dump({key: credentials[key] for key in ("AccessKeyId", "SecretAccessKey", "SessionToken")}, sys.stdout)
