#!/usr/bin/env bash
# lint.sh <build folder>: fails if the linters of SAM or CloudFormation report an error in template.yaml or
# infra/*.yaml.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

cd "$root"
sam validate --lint --template-file template.yaml
for template in infra/*.yaml; do
  sam validate --lint --template-file "$template"
done
cfn-lint template.yaml infra/*.yaml
