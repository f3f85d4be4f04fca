#!/usr/bin/env bash
# http_api.sh <build folder> <port> <function>: deploys infra/ingress.yaml in front of a function, by its ARN, on the emulated
# AWS on that port. Prints the URL of the API and a valid token as one JSON object.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

export AWS_ENDPOINT_URL=http://127.0.0.1:$2

python "$here/http_api.py" "$root/infra/ingress.yaml" "$3"
