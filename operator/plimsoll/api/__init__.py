"""What a user or an admin may write, and what they read back."""
