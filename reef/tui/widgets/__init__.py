"""What is painted: a virtual list, a virtual page of text, and the bars around them."""
