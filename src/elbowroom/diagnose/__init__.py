"""What a program's time goes to, why, and what would gain."""
