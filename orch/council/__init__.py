"""Councils: rounds, seats, replies, what a set of replies comes to, and reports.

What replies say and come to is pure: no I/O, no clock, no database. `rows` stores; `open`,
`take_in`, `count`, `sit` and `views` bring the two together; `seats` is the council as a kind of
work.
"""
