"""The screens. They know the link and the words, nothing else."""
