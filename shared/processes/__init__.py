"""Processes: starting, telling apart, signalling and ending them."""
