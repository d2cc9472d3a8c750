"""The ``gpuherd`` command: one module per command, imported only when it runs."""

from __future__ import annotations

import sys

from gpuherd import __version__

__all__ = ["main"]

_COMMANDS = {
    "status": ("gpuherd.cli.status", "Show all nodes: what is free, and who uses what."),
    "top": ("gpuherd.cli.top", "Watch the herd live, full screen."),
    "free": ("gpuherd.cli.free", "Show free GPUs by type and node."),
    "users": ("gpuherd.cli.users", "Show who uses which GPUs, and who leaves them idle."),
    "node": ("gpuherd.cli.node", "Show one node; on the hub's machine, list and remove nodes."),
    "gpu": ("gpuherd.cli.gpu", "Show one GPU: metrics, processes, bookings, faults."),
    "pick": ("gpuherd.cli.pick", "Choose free GPUs and print the environment variable for them."),
    "wait": ("gpuherd.cli.wait", "Wait until GPUs are free."),
    "run": ("gpuherd.cli.run", "Run a command on free GPUs of this machine; can book them."),
    "usage": ("gpuherd.cli.usage", "Report GPU-hours, sessions and trends; write monthly reports."),
    "book": ("gpuherd.cli.book", "Book GPUs for yourself or your group."),
    "bookings": ("gpuherd.cli.bookings", "List, extend and cancel bookings."),
    "release": ("gpuherd.cli.release", "End bookings early."),
    "login": ("gpuherd.cli.login", "Log in to a hub from this machine."),
    "up": ("gpuherd.cli.up", "Run hub, page and agent together for this machine."),
    "hub": ("gpuherd.cli.hub", "Run and manage the hub."),
    "agent": ("gpuherd.cli.agent", "Report this machine's GPUs to a hub."),
    "demo": ("gpuherd.cli.demo", "Run a hub with a simulated herd; no GPU needed."),
    "token": ("gpuherd.cli.token", "Create, list and revoke join tokens for new nodes."),
    "user": ("gpuherd.cli.user", "Create, list and change accounts."),
    "backup": ("gpuherd.cli.backup_", "Back up the hub's database to a file."),
    "restore": ("gpuherd.cli.restore", "Restore the hub's database from a backup."),
    "import": ("gpuherd.cli.import_", "Import the configuration of another tool."),
    "export": ("gpuherd.cli.export", "Write the herd as a static page, CSV or JSON."),
    "install": ("gpuherd.cli.install", "Install the hub or the agent as a systemd service."),
    "config": ("gpuherd.cli.config", "Check and show the configuration."),
    "doctor": ("gpuherd.cli.doctor", "Find out what is wrong and how to fix it."),
    "completion": ("gpuherd.cli.completion", "Print the completion script for your shell."),
}


def main() -> None:
    """Run the command line and end with its exit code."""
    if sys.argv[1:] == ["--version"]:  # at once: to load click takes three times as long as to start Python
        sys.stdout.write(f"gpuherd, version {__version__}\n")
        return
    try:
        from gpuherd.cli.running import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before anything could be done about it, or when all was done
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
