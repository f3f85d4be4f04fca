#!/usr/bin/env bash
# targets.sh <build folder> <port> make|received: makes a resource of each service that AWS targets are of on the emulated AWS on
# that port and prints their ARNs, or prints what they have received, as one JSON object.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

export AWS_ENDPOINT_URL=http://127.0.0.1:$2

python "$here/targets.py" "$3" "$AWS_ENDPOINT_URL"
