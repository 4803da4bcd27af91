"""Student code run apart from everything else: bubblewrap, limits, the runner, and what may cross to it."""
