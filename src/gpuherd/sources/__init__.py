"""How reports reach the hub. A source hands frames to an ``Intake`` and knows nothing of the fleet behind it."""
