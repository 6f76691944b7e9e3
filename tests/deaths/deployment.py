"""What the template deploys: the functions with their time and their environment, the table, the queues, the filter."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from local.deployment import read_deployment
from local.mappings import StreamMapping

ROOT: Final = Path(__file__).resolve().parents[2]
REGION: Final = "us-east-1"

DEPLOYMENT: Final = read_deployment(
    ROOT / "template.yaml", {"AUTH": "none", "PUSH": "on", "PUSH_ALLOW_LOCAL": "on", "POWERTOOLS_SERVICE_NAME": "a2a"}
)

FUNCTIONS: Final = {
    name: DEPLOYMENT.functions[f"{name.title()}Function"] for name in ("rpc", "relay", "worker", "push")
}

ENVIRONMENT: Final[Mapping[str, str]] = {
    **DEPLOYMENT.variables(),
    "AWS_DEFAULT_REGION": REGION,
    "POWERTOOLS_METRICS_DISABLED": "true",
}
"""What the functions, which share a process until an instance is made, are told."""

(STREAM,) = (mapping for mapping in DEPLOYMENT.mappings if isinstance(mapping, StreamMapping))
"""How the table's stream reaches the relay."""
