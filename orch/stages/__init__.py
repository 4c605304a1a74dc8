"""What happens inside an attempt that has a blueprint: stages, visits, what follows from them."""
