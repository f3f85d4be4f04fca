"""Who is calling, and what the account allows."""
import sys

from .stacks import CONCURRENCY

# From here on the receiver, which is a function too, need not be spared.
COMFORTABLE = 100


def read(run):
    identity = run.client("sts").get_caller_identity()
    run.account = identity["Account"]
    limit = run.client("lambda").get_account_settings()["AccountLimit"]
    run.quota, run.unreserved = limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"]
    # For somebody who has to clean up after a run that was killed.
    print(f"{identity['Arn']}; all names begin with {run.stack}, or belong to a stack that does", file=sys.stderr)
    return f"{run.quota} concurrent executions: {meaning(run.unreserved)}"


def meaning(unreserved):
    """What the executions that no function reserves mean for the parameter Concurrency."""
    if unreserved < CONCURRENCY:
        return f"fewer than Concurrency={CONCURRENCY}, so Lambda throttles; request a higher quota"
    if unreserved < COMFORTABLE:
        return f"Concurrency={CONCURRENCY} fits, and the receiver shares it; nothing can be reserved"
    return f"Concurrency={CONCURRENCY} fits"
