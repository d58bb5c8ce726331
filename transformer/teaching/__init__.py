"""What notebooks teach with: exercises and their checkers, toy tasks, measuring."""
