#!/usr/bin/env bash
# observe.sh <build folder> <port>: prints, as one JSON object, what an operator of the deployed stack sees: the log
# lines of its functions, its alarms and its dashboards.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

export AWS_ENDPOINT_URL=http://127.0.0.1:$2

python "$here/observe.py" lastmile
