"""What a notebook shows, as SVG. `starvelab.show` names it."""
