"""Whom to ask: lists, inventories and services that name the nodes."""
