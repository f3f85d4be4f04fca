"""What every package of the command line states about the project, and the time that its files have."""
import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# `lastmile` belongs to other projects on PyPI and npm. The command is `lastmile` all the same.
NAME = "lastmile-events"
VERSION = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
LICENSE = re.search(r'^license = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
LICENSES = sorted(ROOT.glob("LICENSE*"))
SUMMARY = "Delivers events from Amazon SQS to HTTP endpoints: the command line, and the whole application on one machine"
# The moment of the commit. 1980 is the earliest year of a zip.
SECONDS = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))
