"""`sam build` makes what the chosen architecture's machines can run, and no more than is allowed."""

from pathlib import Path

import pytest

from tests.template import sam

# e_machine, the two bytes at offset 18 of an ELF file.
ELF_MACHINES = {"x86_64": 62, "arm64": 183}

LARGEST_DEPLOYMENT = 12 * 1024 * 1024


@pytest.fixture(params=["arm64", pytest.param("x86_64", marks=pytest.mark.thorough)])
def architecture(request: pytest.FixtureRequest) -> str:
    sam.require_python()
    return str(request.param)


def elf_machine(path: Path) -> int:
    header = path.read_bytes()[:20]
    assert header.startswith(b"\x7fELF"), path
    return int.from_bytes(header[18:20], "little")


def test_every_native_library_is_for_the_machine_it_is_deployed_to(architecture: str) -> None:
    libraries = list(sam.build(architecture).rglob("*.so"))

    assert libraries
    assert {elf_machine(library) for library in libraries} == {ELF_MACHINES[architecture]}


def test_the_deployment_is_small(architecture: str) -> None:
    folders = [folder for folder in sam.build(architecture).iterdir() if folder.is_dir()]

    size = sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())

    assert size <= LARGEST_DEPLOYMENT


def test_every_function_and_every_layer_is_built(architecture: str) -> None:
    template = sam.deployed_template()
    built = {folder.name for folder in sam.build(architecture).iterdir() if folder.is_dir()}

    functions = {
        name for name, resource in template["Resources"].items() if resource["Type"] == "AWS::Lambda::Function"
    }

    assert functions < built
    assert {folder.parent.name for folder in sam.build(architecture).glob("*/python")} == built - functions


def test_the_runtimes_own_packages_are_not_deployed(architecture: str) -> None:
    packages = {folder.name for folder in sam.build(architecture).glob("*/python/*")}

    assert packages.isdisjoint({"boto3", "botocore", "s3transfer", "urllib3"})
