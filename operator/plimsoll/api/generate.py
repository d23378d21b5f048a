"""Writes what follows from the models: crds/ and docs/reference/. `make generate` runs it, a test compares.

Takes the root of the repository as its only argument, by default the current folder.
"""

import sys
from pathlib import Path

from plimsoll import names
from plimsoll.api.crd import crd_yaml
from plimsoll.api.reference import (
    conditions_reference,
    config_reference,
    presets_reference,
    resource_reference,
)


def generated_files() -> dict[str, str]:
    """Every generated file of the API, by its path in the repository."""
    return {
        f"crds/{names.CRD_NAME}.yaml": crd_yaml(),
        "charts/plimsoll/files/crd.yaml": crd_yaml(),
        "docs/reference/llmdeployment.md": resource_reference(),
        "docs/reference/operatorconfig.md": config_reference(),
        "docs/reference/presets.md": presets_reference(),
        "docs/reference/conditions.md": conditions_reference(),
    }


def main(root: Path) -> None:
    for path, text in generated_files().items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(*sys.argv[1:2]))
