"""What a student submitted and what the instructor wrote: files, notebooks, cells and their names."""
