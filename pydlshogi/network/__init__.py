"""Networks: the book's policy network and the layers it is made of."""
