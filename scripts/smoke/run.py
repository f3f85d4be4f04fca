"""What all steps of a smoke run share: the account, the names, the programs, and what the run has made."""
import json
import os
import subprocess
import time
import uuid

from botocore.config import Config

# Longer than any command here takes: `sam deploy` of the application takes about three minutes.
COMMAND_SECONDS = 900
LAST_CHARACTERS = 250
POLL_SECONDS = 1


class Skipped(Exception):
    """A step cannot be done here; its text is the reason."""


class Failed(Exception):
    """The product, or AWS, did not do what the step expects."""


def expect(condition, problem):
    if not condition:
        raise Failed(problem)


def wait_until(read, is_enough, seconds, problem):
    """Reads until it is enough, and returns what was read. `problem` gets what was read last."""
    deadline = time.monotonic() + seconds
    while not is_enough(found := read()):
        expect(time.monotonic() < deadline, f"{problem(found)} after {seconds} s")
        time.sleep(POLL_SECONDS)
    return found


def last_words(done):
    """The end of what a program printed, which has its error, in one line of a table."""
    return " ".join((done.stderr or done.stdout).split())[-LAST_CHARACTERS:]


def event_of(run, name):
    return {"specversion": "1.0", "type": "smoke.event", "source": "/smoke", "id": name, "data": {"run": run.stack}}


class Run:
    """One run. Everything that it makes has its suffix in the name, or belongs to a stack that has."""

    def __init__(self, given, session):
        self.given = given
        self.session = session
        self.region = session.region_name
        self.endpoint = os.environ.get("AWS_ENDPOINT_URL")
        suffix = uuid.uuid4().hex[:8]
        self.stack = f"lastmile-smoke-{suffix}"
        self.receiver_stack = f"{self.stack}-receiver"
        self.began = time.time()
        self.published = 0
        # What the steps find out, for later steps and for the page.
        self.account = self.quota = self.unreserved = self.architecture = self.receiver = None
        self.outputs = {}
        self.is_stopped = False
        # (kind, name) of what has to be deleted, in the order in which it was made.
        self.made = []

    def client(self, service, **credentials):
        # An emulated AWS has no host name for each bucket.
        style = {"addressing_style": "path"} if self.endpoint else {}
        return self.session.client(service, config=Config(s3=style), **credentials)

    def environment(self, credentials=None):
        """The variables of a program: the region and the credentials of this run, or others."""
        credentials = credentials or self.session.get_credentials().get_frozen_credentials()
        names = {"AWS_ACCESS_KEY_ID": credentials.access_key, "AWS_SECRET_ACCESS_KEY": credentials.secret_key}
        if credentials.token:
            names["AWS_SESSION_TOKEN"] = credentials.token
        ours = ("AWS_PROFILE", "AWS_SESSION_TOKEN")
        kept = {name: value for name, value in os.environ.items() if name not in ours}
        return {**kept, **names, "AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region}

    def try_command(self, *arguments, credentials=None, text=None):
        """Runs a program; its result has the exit code and both outputs."""
        try:
            return subprocess.run(arguments, env=self.environment(credentials), input=text, capture_output=True, text=True,
                                  timeout=COMMAND_SECONDS)
        except FileNotFoundError:
            raise Failed(f"the program `{arguments[0]}` is not installed, or not in PATH")

    def command(self, *arguments, text=None):
        done = self.try_command(*arguments, text=text)
        shown = " ".join(arguments[:3])
        expect(done.returncode == 0, f"`{shown} …` ended with {done.returncode}: {last_words(done)}")
        return done.stdout

    def lastmile(self, *arguments, text=None):
        return self.command(self.given.lastmile, *arguments, text=text)

    def publish(self, topic, ids):
        lines = "".join(json.dumps(event_of(self, name)) + "\n" for name in ids)
        self.lastmile("publish", "--stack", self.stack, "--topic", topic, "-", text=lines)
        self.published += len(ids)
