"""The herd on a full terminal, live: `gpuherd top`."""
