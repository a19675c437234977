#!/bin/sh
# Compiles the hashed requirement files; the layer takes the versions that the tests run with.
set -eu
cd "$(dirname "$0")/.."
UV=${UV:-.venv/bin/uv}
flags="--universal --generate-hashes --no-header --no-annotate --quiet"
# shellcheck disable=SC2086
"$UV" pip compile $flags --python-version 3.12 --group dev -o requirements/dev.txt
# shellcheck disable=SC2086
"$UV" pip compile $flags --python-version 3.13 -c requirements/dev.txt shared/requirements.in -o shared/requirements.txt
# shellcheck disable=SC2086
"$UV" pip compile $flags --python-version 3.12 requirements/sam.in -o requirements/sam.txt
# shellcheck disable=SC2086
"$UV" pip compile $flags --python-version 3.13 -c requirements/dev.txt requirements/lambda.in -o requirements/lambda.txt
# shellcheck disable=SC2086
"$UV" pip compile $flags --python-version 3.13 requirements/lambda-oldest.in -o requirements/lambda-oldest.txt
# shellcheck disable=SC2086
"$UV" pip compile $flags --python-version 3.13 -c requirements/dev.txt shared/requirements-models.in -o shared/requirements-models.txt
# shellcheck disable=SC2086
"$UV" pip compile $flags --python-version 3.13 -c requirements/dev.txt layers/pictures/requirements.in -o layers/pictures/requirements.txt
