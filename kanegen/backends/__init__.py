"""What evaluates a program: one folder for each back end."""
