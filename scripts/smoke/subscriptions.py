"""The subscriptions of a run: one for each thing that is shown."""
import json
import tempfile
from pathlib import Path

from .account import COMFORTABLE

NAMESPACE = "smoke"
# Above a second, so that the deliveries wait in the retry queue.
WAITS_SECONDS = (2, 3)
PER_SECOND = 5


def retry(*waits_seconds):
    waits = [f"PT{seconds}S" for seconds in waits_seconds]
    return {"maxAttempts": len(waits) + 1, "schedule": {"kind": "waits", "waits": waits}, "jitterPercent": 0}


def subscription(namespace, topic, url, policy=None, **destination):
    spec = {"destination": {"url": url, **destination}, **({"retry": policy} if policy else {})}
    metadata = {"namespace": namespace, "topic": topic, "name": "receiver"}
    return {"apiVersion": "lastmile.dev/v1", "kind": "Subscription", "metadata": metadata, "spec": spec}


def all_of(run):
    url = run.receiver.url
    # A receiver that is a function must not use up what a small account has for the application.
    spared = {} if run.quota >= COMFORTABLE else {"maxConcurrency": 2}
    return [
        subscription(NAMESPACE, "delivered", f"{url}/ok/delivered"),
        subscription(NAMESPACE, "retried", f"{url}/busy/retried", retry(*WAITS_SECONDS)),
        subscription(NAMESPACE, "refused", f"{url}/refuse/refused"),
        subscription(NAMESPACE, "timeout", f"{url}/hang/timeout", retry(1), timeout="PT3S"),
        subscription(NAMESPACE, "ingress", f"{url}/ok/ingress"),
        subscription(NAMESPACE, "key", f"{url}/refuse/key"),
        subscription(NAMESPACE, "rate", f"{url}/ok/rate", maxPerSecond=PER_SECOND),
        subscription(NAMESPACE, "healthy", f"{url}/ok/healthy", **spared),
        # Probation would put its events off for minutes.
        subscription(NAMESPACE, "hanging", f"{url}/hang/hanging", retry(1), timeout="PT3S", probation=False, **spared),
    ]


def apply(run, subscriptions, owner, credentials=None):
    """Runs `lastmile apply` with these subscriptions, and returns its result."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "subscriptions.yaml"
        # JSON is YAML.
        file.write_text("---\n".join(json.dumps(each) + "\n" for each in subscriptions))
        to = f"s3://{run.outputs['ConfigBucketName']}/subscriptions/"
        words = ("apply", "-f", str(file), "--to", to, "--owner", owner, "--yes")
        return run.try_command(run.given.lastmile, *words, credentials=credentials)
