"""On the node: what the GPUs, the host and the processes say, as the model's structs.

``reading.py`` holds the one interface every GPU collector keeps; the collectors do not know each other.
"""
