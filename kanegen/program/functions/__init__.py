"""The functions of a program: what each computes, and in which steps."""
