"""What a notebook shows. `starvelab.show` names it; matplotlib is loaded when a figure of lines is drawn."""
