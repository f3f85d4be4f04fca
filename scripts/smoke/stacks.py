"""The two stacks of a run: the application, as a user deploys it, and the receiver."""
# What a new account allows, so every account can deploy it.
CONCURRENCY = 10
# The shortest: with it, a response may take five seconds.
TIMEOUT_SECONDS = 20


def create(run, name, template, parameters):
    """Makes a stack from the text of a template and waits for it."""
    cloudformation = run.client("cloudformation")
    run.made.append(("stack", name))
    given = [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()]
    cloudformation.create_stack(StackName=name, TemplateBody=template, Parameters=given, Capabilities=["CAPABILITY_IAM"])
    poll = {"Delay": 1, "MaxAttempts": 600}
    cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig=poll)


def outputs_of(run, name):
    [stack] = run.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def resources_of(run, name):
    """Type and name of each resource of a stack."""
    listed = run.client("cloudformation").describe_stack_resources(StackName=name)["StackResources"]
    return [(resource["ResourceType"], resource["PhysicalResourceId"]) for resource in listed if "PhysicalResourceId" in resource]


def make_bucket(run, name):
    where = {} if run.region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": run.region}}
    run.made.append(("bucket", name))
    run.client("s3").create_bucket(Bucket=name, **where)


def sam_deploy(run, *more):
    """Deploys the release as docs/guides/deploy.md does, with the parameters of a run and more."""
    parameters = [f"Concurrency={CONCURRENCY}", f"DispatchTimeout={TIMEOUT_SECONDS}", "LogRetentionDays=1", "Ingress=iam", *more]
    if run.given.local_receiver:
        parameters.append("AllowPrivateDestinations=127.0.0.1")
    run.command("sam", "deploy", "--template-file", str(run.given.release / "template.yaml"), "--stack-name", run.stack,
                "--s3-bucket", code_bucket(run), "--region", run.region, "--capabilities", "CAPABILITY_IAM",
                "CAPABILITY_AUTO_EXPAND", "--no-confirm-changeset", "--parameter-overrides", *parameters)


def code_bucket(run):
    return f"{run.stack}-code"


def deploy(run):
    """Makes the stack of the application. The code goes to a bucket of this run, so nothing of SAM is left."""
    make_bucket(run, code_bucket(run))
    run.made.append(("stack", run.stack))
    sam_deploy(run)
    run.outputs = outputs_of(run, run.stack)
    name = run.outputs["DispatchFunctionName"]
    run.architecture = run.client("lambda").get_function_configuration(FunctionName=name)["Architectures"][0]
    return f"{len(resources_of(run, run.stack))} resources, {run.architecture}, Concurrency={CONCURRENCY}"
