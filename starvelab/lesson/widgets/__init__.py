"""Widgets of a notebook. `starvelab.widgets` names them."""
