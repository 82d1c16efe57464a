"""What is run: one policy on one world, or many on many."""
