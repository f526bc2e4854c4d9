"""What the local pages share: one guard in front of every request, and a server that listens on loopback only."""

from robustjudge.web.guard import Guard, csrf_of, new_token, visitor
from robustjudge.web.serve import Server, serve

__all__ = ["Guard", "Server", "csrf_of", "new_token", "serve", "visitor"]
