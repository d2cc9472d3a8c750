"""Old files as their tools' documents show them."""

from __future__ import annotations

from pathlib import Path

import pytest

FILES = {
    "hosts.txt": "192.168.0.1\n192.168.0.2\n",
    "config.ini": (
        "[common]\nuser = yourusername\nhosts = host1.domain.tld,host2.domain.tld\nkey_filename=path_to_key\n"
    ),
    "config.yml": (
        "# Config for GPU monitor\nweb_port: 8042\nrpc_port: 8043\nrpc_timeout: 2\nhosts:\n  - host1\n  - host2\n"
    ),
    "hosts": (
        "[webserver]\nserver ansible_host=10.0.0.9 ansible_user=u ansible_remote_tmp=/tmp/.ansible/tmp\n\n"
        "[rpcservers]\nnode1 ansible_host=10.0.0.1 ansible_user=u ansible_remote_tmp=/tmp/.ansible/tmp\n"
        "node2 ansible_host=10.0.0.2 ansible_user=u ansible_remote_tmp=/tmp/.ansible/tmp\n"
    ),
    "fetch_stats_conf.json": '{"CONSUL_SERVICE_URI": "http://consul.example.org:8500/v1/catalog/service/gpu"}\n',
    "run-this-on-every-node.sh": (
        '#!/bin/bash\nSERVER="10.0.0.9:3000/"\nwhile true; do\n  gpustat --json | curl -s -X POST -d @- $SERVER\ndone\n'
    ),
    "index.php": (
        '<?php\n$HOSTS = array(\n  \'gpu1\' => \'GPU one\', // the first\n  "gpu2" => "GPU \\"two\\""\n);\n'
        "/* short */ $SHORT_GPU_NAMES = ['GeForce GTX TITAN X' => 'Titan'];\n?>\n<html></html>\n"
    ),
    "comments.json": (
        '{\n  "gpu1": [ // GPU 0 and 1\n    {"name": "sclaus", "date": "2099-07-01 00:00", "comment": "by Santa"},\n'
        '    {"name": "pnoel", "date": "2018-08-01 00:00", "comment": ""},\n  ],\n'
        '  "gpu2": {"0": {"name": "x", "date": "3d"}}\n}\n'
    ),
    "aliases.csv": "bob,rob,robert # one person\n\nal,alice\n",
}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder with one file of every kind."""
    folder = tmp_path / "old"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "data").mkdir()
    (folder / "data/gpu1_gpus.csv").write_text("")
    return folder


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "gpuherd.toml"
