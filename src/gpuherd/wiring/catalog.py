"""The plug-ins by name: the only place that knows them. Targets are imported when they are used, never before."""

from __future__ import annotations

from gpuherd import __version__
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.spec import CollectorSpec, ProbeSpec
from gpuherd.model.errors import Misconfigured

__all__ = ["COLLECTORS", "FINDERS", "LOGIN_WAYS", "SAMPLE_STORES", "WAYS", "probe_spec"]

COLLECTORS = {
    "nvml": "gpuherd.collect.nvml:NvmlCollector",
    "nvidia_smi": "gpuherd.collect.nvidia_smi:NvidiaSmiCollector",
    "amd_smi": "gpuherd.collect.amd_smi:AmdSmiCollector",
    "rocm_smi": "gpuherd.collect.rocm_smi:RocmSmiCollector",
}
"""Ways to read GPUs, as named in ``agent.collectors``."""
FINDERS = {
    "hosts_file": "gpuherd.discovery.hosts_file:HostsFileFinder",
    "ini": "gpuherd.discovery.ini:IniFinder",
    "yaml": "gpuherd.discovery.yaml_file:YamlFinder",
    "consul": "gpuherd.discovery.consul:ConsulFinder",
    "slurm": "gpuherd.discovery.slurm:SlurmFinder",
    "ssh_config": "gpuherd.discovery.ssh_config:SshConfigFinder",
    "ansible": "gpuherd.discovery.ansible:AnsibleFinder",
}
"""Where nodes are named, as in ``nodes.find.in``."""
WAYS = {
    "ssh": "gpuherd.wiring.ways.ssh:ssh_way",
    "pull": "gpuherd.wiring.ways.pull:pull_way",
    "node_info": "gpuherd.wiring.ways.old_tools:node_info_way",
    "xmlrpc": "gpuherd.wiring.ways.old_tools:xmlrpc_way",
    "http_files": "gpuherd.wiring.ways.old_tools:http_files_way",
}
"""How nodes are reached, as in ``nodes.reach.by``."""
LOGIN_WAYS = {
    "pam": "gpuherd.auth.pam:PamWay",
    "ldap": "gpuherd.auth.ldap:LdapWay",
    "oidc": "gpuherd.auth.oidc:OidcWay",
    "proxy": "gpuherd.auth.proxy_header:ProxyHeader",
}
"""Who vouches for people, as the tables of ``[login]``."""
SAMPLE_STORES = {
    "embedded": "gpuherd.wiring.sample_stores:embedded_store",
    "victoriametrics": "gpuherd.wiring.sample_stores:victoriametrics_store",
    "prometheus": "gpuherd.wiring.sample_stores:prometheus_store",
}
"""Where samples are kept, as in ``history.store.in``."""
NODE = "gpuherd.collect.node:NodeCollector"


def probe_spec(settings: AgentSettings) -> ProbeSpec:
    """Say what an agent's probe runs; ``Misconfigured`` for a collector that does not exist."""
    specs = []
    for name in settings.collectors:
        if name not in COLLECTORS:
            raise Misconfigured(
                f'agent.collectors: there is no collector "{name}"; known: {", ".join(COLLECTORS)}'
            )
        options = {"pcie_throughput": True} if name == "nvml" and settings.pcie_throughput else {}
        specs.append(CollectorSpec(name=name, target=COLLECTORS[name], options=options))
    return ProbeSpec(
        node=NODE,
        node_options={"command_lines": settings.command_lines, "agent_version": __version__},
        collectors=tuple(specs),
    )
