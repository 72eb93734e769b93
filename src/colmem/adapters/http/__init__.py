"""The HTTP server: the contract's operations and what hosts need around them."""
