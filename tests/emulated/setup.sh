#!/usr/bin/env bash
# setup.sh <build folder>: installs the tools of requirements.txt into <build folder>/venv, with the hashes that
# requirements.lock has. Does nothing if they are installed. The stamp is written last, so an interrupted installation is
# repeated.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
  echo "$python is missing: the emulated AWS needs Python 3.11 or newer (set PYTHON to choose one)" >&2
  exit 1
fi

wanted=$({ "$python" --version && cat "$here/requirements.lock"; } | sha256sum | cut -d' ' -f1)
stamp=$venv/requirements.sha256
if [[ -f $stamp && $(<"$stamp") == "$wanted" ]]; then
  exit 0
fi

echo "installing the emulated AWS into $venv (about 900 MB, a few minutes)" >&2
rm -rf "$venv"
"$python" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps \
  --requirement "$here/requirements.lock"
echo "$wanted" >"$stamp"
