"""What live clusters say."""
