"""The ``gpuherd`` command: one module per command, imported only when it runs."""

from __future__ import annotations

import sys

from gpuherd import __version__

__all__ = ["main"]

_COMMANDS = {
    "status": ("gpuherd.cli.status", "Show the whole herd: what is free, who uses what."),
    "top": ("gpuherd.cli.top", "Watch the herd live, on the whole terminal."),
    "free": ("gpuherd.cli.free", "Tell what is free, by type and place."),
    "users": ("gpuherd.cli.users", "Tell who holds what now, and who leaves it idle."),
    "node": ("gpuherd.cli.node", "Show one node; list and remove nodes on the hub's machine."),
    "gpu": ("gpuherd.cli.gpu", "Show one GPU: figures, processes, bookings, faults."),
    "pick": ("gpuherd.cli.pick", "Choose free GPUs and print what makes a program use them."),
    "wait": ("gpuherd.cli.wait", "Wait until GPUs can be had."),
    "run": ("gpuherd.cli.run", "Run a command on free GPUs, booked meanwhile if you like."),
    "usage": ("gpuherd.cli.usage", "Tell who used how much, and whom to ask for a GPU."),
    "book": ("gpuherd.cli.book", "Book GPUs for yourself or your group."),
    "bookings": ("gpuherd.cli.bookings", "List, extend and cancel bookings."),
    "release": ("gpuherd.cli.release", "Give booked GPUs back early."),
    "login": ("gpuherd.cli.login", "Log in to a hub, to book from this machine."),
    "up": ("gpuherd.cli.up", "Watch this machine: hub, page and agent in one go."),
    "hub": ("gpuherd.cli.hub", "Run and administer the hub that everyone looks at."),
    "agent": ("gpuherd.cli.agent", "Report this machine's GPUs to a hub."),
    "demo": ("gpuherd.cli.demo", "Show a simulated herd; needs no GPU."),
    "token": ("gpuherd.cli.token", "Make join tokens, on the hub's machine."),
    "user": ("gpuherd.cli.user", "List, create and change accounts, on the hub's machine."),
    "backup": ("gpuherd.cli.backup_", "Write all records to a file, on the hub's machine."),
    "restore": ("gpuherd.cli.restore", "Put records back out of a backup."),
    "import": ("gpuherd.cli.import_", "Take over the configuration of another tool."),
    "export": ("gpuherd.cli.export", "Write the herd as a page and tables, for any web server."),
    "install": ("gpuherd.cli.install", "Run hub or agent as a service of this machine."),
    "config": ("gpuherd.cli.config", "Check the configuration or show what it can hold."),
    "doctor": ("gpuherd.cli.doctor", "Find out what is wrong, and how to mend it."),
    "completion": ("gpuherd.cli.completion", "Print what makes a shell complete commands and names."),
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
