"""Prints what an operator of a deployed stack sees, as one JSON object: the log lines of its functions, by log group,
its alarms by name, and the bodies of its dashboards by name."""

import json
import sys

import botocore.session

session = botocore.session.get_session()


def log_groups(stack):
    [description] = session.create_client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in description["Outputs"]}
    return [outputs["DispatchLogGroupName"], outputs["DeadLetterLogGroupName"]]


def lines(group):
    pages = session.create_client("logs").get_paginator("filter_log_events").paginate(logGroupName=group)
    return [event["message"].strip() for page in pages for event in page["events"]]


def alarms(cloudwatch):
    pages = cloudwatch.get_paginator("describe_alarms").paginate()
    return {alarm["AlarmName"]: alarm for page in pages for alarm in page["MetricAlarms"]}


def dashboards(cloudwatch):
    names = [entry["DashboardName"] for entry in cloudwatch.list_dashboards()["DashboardEntries"]]
    return {name: json.loads(cloudwatch.get_dashboard(DashboardName=name)["DashboardBody"]) for name in names}


cloudwatch = session.create_client("cloudwatch")
seen = {
    "logs": {group: lines(group) for group in log_groups(sys.argv[1])},
    "alarms": alarms(cloudwatch),
    "dashboards": dashboards(cloudwatch),
}
json.dump(seen, sys.stdout, default=str)
