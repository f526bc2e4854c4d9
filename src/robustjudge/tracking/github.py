"""One comment on a pull request, found by its marker and updated in place; outside a pull request nothing is done."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from robustjudge.errors import ConfigError, Incomplete
from robustjudge.gate.summary import MARKER
from robustjudge.tracking.alerts import Stay

PAGES = 20


def put_comment(body: str, env: Mapping[str, str] | None = None) -> str:
    """Create or update the gate's comment; returns ``created``, ``updated`` or why nothing was done.

    Reads ``GITHUB_API_URL``, ``GITHUB_REPOSITORY``, ``GITHUB_REF`` and ``GITHUB_TOKEN``.  Raises
    :class:`~robustjudge.errors.Incomplete` when the API fails.
    """
    given = os.environ if env is None else env
    found = re.fullmatch(r"refs/pull/(\d+)/(?:merge|head)", given.get("GITHUB_REF", ""))
    if found is None:
        return "not a pull request, so no comment"
    repo, token = given.get("GITHUB_REPOSITORY", ""), given.get("GITHUB_TOKEN", "")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repo):
        raise ConfigError("GITHUB_REPOSITORY names no owner/repository")
    if not token:
        raise ConfigError("GITHUB_TOKEN is empty; give the step `GITHUB_TOKEN: ${{ github.token }}`")
    api = given.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
    comments = f"{api}/repos/{repo}/issues/{found[1]}/comments"
    for page in range(1, PAGES + 1):
        batch = _call("GET", f"{comments}?per_page=100&page={page}", token)
        for comment in batch:
            if str(comment.get("body", "")).startswith(MARKER):
                _call("PATCH", f"{api}/repos/{repo}/issues/comments/{int(comment['id'])}", token, {"body": body})
                return "updated"
        if len(batch) < 100:
            break
    _call("POST", comments, token, {"body": body})
    return "created"


def _call(method: str, url: str, token: str, data: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json", "User-Agent": "robustjudge"}
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.build_opener(Stay).open(request, timeout=30) as reply:
            return json.loads(reply.read() or b"null")
    except urllib.error.HTTPError as fault:
        raise Incomplete(f"GitHub answered {fault.code} to the comment; the gate's result stands") from None
    except (urllib.error.URLError, OSError, ValueError) as fault:
        raise Incomplete(f"GitHub cannot be reached for the comment ({fault}); the gate's result stands") from None
