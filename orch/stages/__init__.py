"""What happens inside an attempt that has a blueprint: stages, visits, and what follows from them."""
