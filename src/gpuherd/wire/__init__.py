"""Versioned frames between agent and hub.

WebSocket subprotocol ``gpuherd.v1``; each message is one msgpack frame. Either side may dial. Inventory travels
once, then each sample is a few number matrices; a frame is numbered, acknowledged and safe to repeat.
docs/protocol.md tells the whole exchange.
"""
