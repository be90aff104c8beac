"""The build backend: maturin's, with the native command put into the wheel.

The command is the very program that `cargo install` would give, not an entry point
that starts Python first.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE / "procwright.data" / "scripts"
# maturin asks for it whatever it is asked for.
SCRIPTS.mkdir(parents=True, exist_ok=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings = _with_command(config_settings)
    return maturin.build_wheel(wheel_directory, settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    settings = _with_command(config_settings)
    return maturin.build_editable(wheel_directory, settings, metadata_directory)


def _with_command(config_settings):
    """Builds the command, and returns the settings for maturin.

    `pip wheel --config-settings profile=dev` builds both with cargo's profile `dev`,
    in a fifth of the time. The tests do so.
    """
    settings = dict(config_settings or {})
    profile = settings.pop("profile", "release")
    _build_command(profile)
    if profile != "release":
        settings["build-args"] = f"{settings.get('build-args', '')} --profile {profile}"
    return settings


def _build_command(profile: str) -> None:
    manifest = HERE.parent / "Cargo.toml"
    if not manifest.exists():  # from an sdist, where the workspace is in it
        manifest = HERE / "Cargo.toml"
    cargo = os.environ.get("CARGO", "cargo")
    call = [
        cargo,
        "build",
        "--profile",
        profile,
        "--package",
        "procwright-cli",
        "--bin",
        "procwright",
    ]
    call += ["--manifest-path", str(manifest), "--message-format=json-render-diagnostics"]
    built = subprocess.run(call, cwd=HERE, stdout=subprocess.PIPE, check=True)
    messages = (json.loads(line) for line in built.stdout.splitlines())
    programs = [message["executable"] for message in messages if message.get("executable")]
    shutil.copy2(programs[-1], SCRIPTS / "procwright")
