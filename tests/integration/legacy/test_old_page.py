"""comments.json between the hub and an old page: PHP itself reads and writes it, as that page does."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gpuherd.bookings.comments_export import comment_entries
from gpuherd.bookings.comments_json import read_comments, write_comments
from gpuherd.model.bookings import Booking
from support.booking_desk import a100, herd_of, ref

UTC = ZoneInfo("UTC")
HOUR = 3600
# The page: its zone, hosts of hosts.json, `name (3d)` while it lasts, grey `(1d ago)` for up to two whole days after.
SHOW = r"""<?php
date_default_timezone_set("UTC");
$hosts = json_decode(file_get_contents("hosts.json"), true);
$comments = json_decode(file_get_contents("comments.json"), true);
if ($comments === null) { fwrite(STDERR, json_last_error_msg()); exit(1); }
foreach ($hosts as $host => $title) {
    for ($gpu = 0; $gpu < 20; $gpu++) {
        if (!isset($comments[$host][$gpu]) || empty($comments[$host][$gpu]["date"])) continue;
        $entry = $comments[$host][$gpu];
        $diff = (new DateTime())->diff(new DateTime($entry["date"]));
        if ($diff->invert && $diff->days > 2) continue;
        $left = ($diff->days > 0 ? $diff->days . "d" : $diff->h . "h") . ($diff->invert ? " ago" : "");
        echo "$title:$gpu {$entry["name"]} ($left) {$entry["comment"]}\n";
    }
}
"""
# The form: a relative date, the GPU as the key of a table, the whole file written again.
BOOK = r"""<?php
date_default_timezone_set("UTC");
$comments = is_file("comments.json") ? json_decode(file_get_contents("comments.json"), true) : array();
list($_, $host, $gpu, $name, $until, $comment) = $argv;
preg_match('/^ *(([0-9]+)d)? ?(([0-9]+)h)? *$/i', $until, $found);
$date = new DateTime();
$date->add(new DateInterval("P" . ($found[2] ? $found[2] : 0) . "DT" . (isset($found[4]) ? $found[4] : 0) . "H"));
$comments[$host][(int) $gpu] = array("name" => $name, "date" => $date->format("Y-m-d H:i"), "comment" => $comment);
file_put_contents("comments.json", json_encode($comments));
"""


def php(folder: Path, program: str, *arguments: str) -> str:
    found = shutil.which("php")
    if found is None:
        pytest.skip("php is not installed: make provision installs it, as root on Debian")
    (folder / "page.php").write_text(program)
    done = subprocess.run(
        [found, "-d", "error_reporting=E_ALL", "-d", "display_errors=stderr", "page.php", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_page_shows_what_the_hub_exports(tmp_path: Path) -> None:
    now = time.time()
    herd = herd_of(*(a100("gpu01.lip6.fr", index, node_name="gpu01.lip6.fr") for index in range(5)))

    def booking(index: int, name: str, hours: float, title: str = "") -> Booking:
        return Booking(
            id=index + 1,
            title=title,
            comment="",
            owner_id=None,
            owner_name=name,
            group=None,
            devices=(ref("gpu01.lip6.fr", index),),
            starts_at=int(now) - 100 * HOUR,
            ends_at=int(now + hours * HOUR),
            zone="UTC",
            state="active",
            created_at=0.0,
            changed_at=0.0,
            revision=1,
        )

    bookings = [
        booking(0, "Alice", 3.5 * 24, "père Noël"),
        booking(1, "Carol", 17.5),
        booking(3, "dan", -71),
        booking(4, "eve", -73),
    ]
    (tmp_path / "hosts.json").write_text(json.dumps({"gpu01": "gpu01.lip6.fr"}))
    (tmp_path / "comments.json").write_bytes(write_comments(comment_entries(herd, bookings, now), UTC))
    assert php(tmp_path, SHOW).splitlines() == [
        "gpu01.lip6.fr:0 Alice (3d) père Noël",
        "gpu01.lip6.fr:1 Carol (17h) ",
        "gpu01.lip6.fr:3 dan (2d ago) ",
    ]


def test_the_hub_reads_what_the_form_wrote(tmp_path: Path) -> None:
    php(tmp_path, BOOK, "gpu01", "2", "Père Noël", "3d 4h", "a/b")
    php(tmp_path, BOOK, "gpu01", "0", "Bob+", "17h", "")
    content = (tmp_path / "comments.json").read_bytes()
    assert b'"gpu01":{"2":' in content, "a table, as the GPUs do not begin with 0"
    found = read_comments(content, UTC)
    assert (found.complaints, found.hosts) == ((), ("gpu01",))
    wanted = {(2, "Père Noël", "a/b"): 76 * HOUR, (0, "Bob+", ""): 17 * HOUR}
    assert {(one.index, one.name, one.comment) for one in found.entries} == wanted.keys()
    for one in found.entries:
        ahead = one.until - time.time()
        assert (
            wanted[one.index, one.name, one.comment] - 120 < ahead <= wanted[one.index, one.name, one.comment]
        )
