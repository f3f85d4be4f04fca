#!/usr/bin/env bash
# role.sh <build folder> <port> <name> <policy>: makes a role with this policy on the emulated AWS on that port, and prints
# the credentials of a session of it as one JSON object.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

export AWS_ENDPOINT_URL=http://127.0.0.1:$2

python "$here/role.py" "$3" "$4"
