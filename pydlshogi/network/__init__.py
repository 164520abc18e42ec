"""The networks: from the planes of a position to move logits and a value.

=====================  ===========================================================
network                base class; what training and play may use of any network
value_kind             what a value means, and its loss
trunk                  the twelve hidden layers of the book's networks
policy, policy_bn,     the book's five networks, with its names and model files
value, policy_value,
policy_value_resnet
policy_hand1x1,        relatives of the book's networks: hand planes through 1×1
policy_value_small     filters, with the last two moves or without; a small network
own                    networks of the user, from a Python file
registry               the networks by name
=====================  ===========================================================
"""
