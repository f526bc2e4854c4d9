"""A PostgreSQL of our own for the length of the tests: a fresh cluster in a temporary folder, started by a user that is
not root, reached through a socket in that folder only."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def _programs() -> Path | None:
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return places[-1].parent if places else None


def _absent(why: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{why}; in CI this test must run")
    pytest.skip(why)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of an empty database."""
    programs = _programs()
    if programs is None:
        _absent("PostgreSQL is not installed here (apt install postgresql)")
    assert programs is not None
    try:
        import psycopg  # noqa: F401
    except ImportError:
        _absent("psycopg is not installed (pip install 'robustjudge[postgres]')")
    user: dict[str, object] = {}
    folder = Path(tempfile.mkdtemp(prefix="rj-pg-", dir="/tmp"))  # a short path: a socket's has at most 107 bytes
    name = pwd.getpwuid(os.getuid()).pw_name
    if os.getuid() == 0:
        for name in ("postgres", "nobody"):
            try:
                account = pwd.getpwnam(name)
                break
            except KeyError:
                continue
        else:
            _absent("root cannot run PostgreSQL and there is no account to run it as")
        os.chown(folder, account.pw_uid, account.pw_gid)
        user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}

    def do(*words: str) -> None:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False, **user)  # type: ignore[call-overload]
        assert done.returncode == 0, done.stderr + done.stdout

    data = str(folder / "data")
    do(str(programs / "initdb"), "-D", data, "-U", "judge", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    do(str(programs / "pg_ctl"), "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield f"postgresql://judge@/postgres?host={folder}"
    finally:
        do(str(programs / "pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store lies: each test runs on both databases."""
    if request.param == "sqlite":
        return str(tmp_path / "review.sqlite")
    url: str = request.getfixturevalue("postgres")
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS review_events")
    return url
