"""What a leader has in hand: the scheduler as one page, waiting, driving, the board, doctor."""
