"""Builds hub, agent and demo from the configuration: the only place that names plug-ins."""
