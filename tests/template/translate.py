"""Prints a SAM template as the CloudFormation template that AWS makes of it. Runs in the SAM environment."""

# mypy: disable-error-code="import-not-found"

import json
import sys
from pathlib import Path
from typing import Any

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

CODE_PROPERTIES = ("CodeUri", "ContentUri")


class NoManagedPolicies:
    """SAM asks for AWS's managed policies by name; a template that names none needs none."""

    def load(self) -> dict[str, str]:
        return {}


def with_uploaded_code(template: dict[str, Any]) -> dict[str, Any]:
    """Name an object in S3 wherever the template names a folder, as `sam deploy` does."""
    for resource in template["Resources"].values():
        for name in CODE_PROPERTIES:
            if name in resource["Properties"]:
                resource["Properties"][name] = "s3://uploaded-code/code.zip"
    return template


template = with_uploaded_code(yaml_parse(Path(sys.argv[1]).read_text()))
json.dump(transform(template, {}, NoManagedPolicies()), sys.stdout, indent=1)
