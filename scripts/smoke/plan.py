"""The steps of a run, in their order, and how they end."""
import sys
import time
from typing import NamedTuple

from . import access, account, delivery, facts, ingress, key, leftovers, limits, receiver, stacks
from .run import Failed, Skipped


class Step(NamedTuple):
    name: str
    perform: object
    # Without these it cannot be done.
    needs: tuple = ()


class Result(NamedTuple):
    name: str
    # ok, failed or skipped
    state: str
    seconds: float
    detail: str


STEPS = [
    Step("account", account.read),
    Step("receiver", receiver.make, ("account",)),
    Step("deploy", stacks.deploy, ("account",)),
    Step("apply", delivery.applied, ("deploy", "receiver")),
    Step("doctor", delivery.examined, ("apply",)),
    Step("deliver", delivery.delivered, ("apply",)),
    Step("ingress", ingress.published, ("deliver",)),
    Step("signature", delivery.signed, ("deliver",)),
    Step("retry", delivery.retried, ("deliver",)),
    Step("dead letter", delivery.refused, ("deliver",)),
    Step("replay", delivery.replayed, ("dead letter",)),
    Step("timeout", delivery.timed_out, ("deliver",)),
    Step("killed function", delivery.killed, ("deliver",)),
    Step("maximum rate", limits.rate_holds, ("deliver",)),
    Step("hanging neighbour", limits.neighbours, ("deliver",)),
    Step("namespace role", access.namespace_role, ("apply",)),
    Step("conditions", access.conditional_writes, ("deploy",)),
    Step("redrive", facts.redriven, ("account",)),
    Step("log format", facts.log_format, ("deliver",)),
    # Late: CloudWatch has the metrics of an invocation after a minute or two.
    Step("throttling", limits.throttling, ("hanging neighbour",)),
    # Changes the stack.
    Step("key", key.changed, ("deliver",)),
]
# Whatever happened before.
LAST = Step("delete", leftovers.delete_all)


def perform(run):
    results = []
    for step in (*STEPS, LAST):
        results.append(result_of(run, step, results))
    return results


def clean_up(run):
    """Deletes what an earlier run left behind."""
    return [result_of(run, Step("delete", leftovers.delete_named), [])]


def has_failed(results):
    return any(result.state == "failed" for result in results)


def result_of(run, step, earlier):
    began = time.monotonic()
    state, detail = outcome(run, step, earlier)
    result = Result(step.name, state, time.monotonic() - began, detail)
    print(f"{result.state:8}{result.seconds:6.0f} s  {result.name}: {result.detail}", file=sys.stderr, flush=True)
    return result


def outcome(run, step, earlier):
    if run.is_stopped and step != LAST:
        return "skipped", "the run was stopped"
    passed = {result.name for result in earlier if result.state == "ok"}
    missing = [name for name in step.needs if name not in passed]
    if missing:
        return "skipped", f"needs the step {missing[0]}"
    try:
        return "ok", step.perform(run)
    except Skipped as skipped:
        return "skipped", str(skipped)
    except Failed as failed:
        return "failed", str(failed)
    except KeyboardInterrupt:
        run.is_stopped = True
        return "failed", "stopped by Ctrl-C"
    # An answer of AWS that no step expects must not keep the others, and the last one, from running.
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
