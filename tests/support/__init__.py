"""Helpers that several tests share: a clock to turn, a bus on a real file, real processes."""
