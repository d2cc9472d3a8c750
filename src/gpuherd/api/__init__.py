"""The hub's face: HTTP resources one module each, the node socket, the live stream, the built page, health."""
