"""Where what is known is kept: the seam (`engine`), and the engine that there is (`sqlite`)."""
