"""The page that a run prints."""
import json
import platform
import time

import boto3

from . import actions, leftovers
from .run import Failed

# With these, a table's cell would end, or a line.
REPLACED = str.maketrans({"|": "/", "\n": " "})
DETAIL_CHARACTERS = 400


def of(run, results):
    where = f"an emulated AWS at {run.endpoint}" if run.endpoint else f"AWS, {run.region}"
    lines = [f"## Smoke run on {where}", "", versions(run), "", "| step | result | s | detail |", "|---|---|---|---|"]
    lines += [row(run, result) for result in results]
    lines += ["", totals(run, results), "", *permissions(results)]
    if run.made:
        lines += ["", "Left behind. Delete it with:", "", "```sh", leftovers.command(run), "```"]
    return "\n".join(lines)


def row(run, result):
    # The page may be pasted where everybody reads it.
    detail = result.detail.replace(run.account or "nobody", "ACCOUNT").translate(REPLACED)[:DETAIL_CHARACTERS]
    return f"| {result.name} | {result.state} | {result.seconds:.0f} | {detail} |"


def first_line(run, *command):
    try:
        return run.command(*command).splitlines()[0]
    except Failed as failed:
        return str(failed)


def versions(run):
    programs = [first_line(run, run.given.lastmile, "--version"), first_line(run, "sam", "--version")]
    day = time.strftime("%Y-%m-%d", time.gmtime(run.began))
    of_python = f"boto3 {boto3.__version__}, Python {platform.python_version()}"
    return f"{day}, {run.architecture or 'nothing deployed'}, {', '.join(programs)}, {of_python}"


def totals(run, results):
    count = lambda state: sum(1 for result in results if result.state == state)
    states = ", ".join(f"{count(state)} {state}" for state in ("ok", "failed", "skipped"))
    return f"**{states}**, {time.time() - run.began:.0f} s, {run.published} events. {price(run)}"


def price(run):
    """A whole day of the application with these events; the run takes some minutes of it."""
    try:
        events = str(max(run.published, 1))
        estimate = json.loads(run.lastmile("cost", "--events", events, "--success", "0.9", "--output", "json"))
    except Failed as failed:
        return f"No estimate of the price: {failed}"
    day = float(estimate["usd"]["day"])
    return f"At most ${day:.2f}, which is `lastmile cost` for a whole day, and less than $0.02 for the receiver and the key."


def permissions(results):
    return [f"Permissions of the functions that were used: {', '.join(actions.used(results)) or 'none'}.", "",
            f"Not used: {', '.join(actions.unused(results))}."]
