"""What a notebook of the lab needs: answers compared, pictures and tables, predictions and explorers."""
