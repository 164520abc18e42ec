"""The networks: from the planes of a position to move logits and a value.

=====================  ===========================================================
network                base class; what training and play may use of any network
value_kind             what a value means, and its loss
layers                 layers that several networks share
convolution, linear,   Chainer's layers with the same parameters, computed faster: by cpu/
normalization          and gpu/
trunk                  the twelve hidden layers of the book's networks
policy, policy_bn,     the book's five networks, with its names and model files
value, policy_value,
policy_value_resnet
policy_hand1x1,        relatives of the book's networks: hand planes through 1×1
policy_value_hand1x1,  filters; the planes of the last two moves; a small network with
policy_value_history,  two heads
policy_value_small
own                    networks of the user, from a Python file
registry               the networks by name
layouts                which network an npz holds; conversion of earlier files
model_file, npz        reading and writing model files
evaluator              a loaded model that evaluates positions
backend,               what computes a network in play on a CPU: compiler, or OpenVINO;
openvino_program,      its comparison with the network itself
agreement
quantization,          OpenVINO's convolutions in integers of 8 bits; positions of random
random_games           games, which a network is tried on
fold, unfold           batch normalization folded into the convolutions, and put back
compiler, trace,       a network turned into a program of numpy operations for play
fusion, translations
transfer               a trunk copied from one network to another
dirac                  initialization near the identity
onnx_export,           export to ONNX
onnx_dlshogi,
onnx_check
cpu/, gpu/             the layers, computed fast on a CPU and on a GPU
=====================  ===========================================================
"""
