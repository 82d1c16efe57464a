"""What ``locb watch`` draws: words and numbers first, a chart of characters beside them."""
