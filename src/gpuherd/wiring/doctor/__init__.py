"""``gpuherd doctor``: walks the way that a node's reports take and names the first step that is broken.

``steps`` and ``wording`` say what is told and ``blame`` which step a failure belongs to; they look at nothing. What
looks: ``network`` (names and ports), ``route`` and ``approach`` (how a listed node is reached, by the hub's own ways),
``hub_api`` (the running hub), ``own_gpus``, ``agent_hub`` and ``folders`` (this machine). ``walk``, ``arrived`` and
``everything`` put these in order for a listed node, a node that comes by itself, and all there is.

Nothing here writes into the hub's or the agent's folder, and no link that is up is disturbed.
"""
