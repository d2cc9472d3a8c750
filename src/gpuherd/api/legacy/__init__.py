"""The addresses of older tools, served so that their nodes and pages go on working unchanged.

Each is an ASGI application of its own for a listener of its own, off until the configuration turns it on. None of
them knows a login: only listed networks come in.
"""
