"""The book's five networks, made of Chainer's links from the table in SPEC.md."""

from pydlshogi.compat import chainer

F = chainer.functions
L = chainer.links


class _Plain(chainer.Chain):
    """Twelve 3×3 convolutions; optionally batch normalization; the heads as asked."""

    def __init__(self, policy, value, normalize=False):
        super().__init__()
        self.normalize = normalize
        with self.init_scope():
            for n in range(1, 13):
                setattr(self, f"l{n}", L.Convolution2D(192 if n > 1 else 104, 192, 3, pad=1))
                if normalize:
                    setattr(self, f"norm{n}", L.BatchNormalization(192))
            if policy:
                self.l13 = L.Convolution2D(192, 27, 1, nobias=True)
                self.l13_bias = L.Bias(shape=(2187,))
            if value:
                self.l13_v = L.Convolution2D(192, 27, 1)
                self.l14_v = L.Linear(2187, 256)
                self.l15_v = L.Linear(256, 1)

    def trunk(self, x):
        for n in range(1, 13):
            x = self[f"l{n}"](x)
            if self.normalize:
                x = self[f"norm{n}"](x)
            x = F.relu(x)
        return x

    def policy(self, h):
        return self.l13_bias(F.reshape(self.l13(h), (-1, 2187)))

    def value(self, h):
        return self.l15_v(F.relu(self.l14_v(F.relu(self.l13_v(h)))))


class Policy(_Plain):
    def __init__(self):
        super().__init__(policy=True, value=False)

    def forward(self, x):
        return self.policy(self.trunk(x))


class PolicyBN(_Plain):
    def __init__(self):
        super().__init__(policy=True, value=False, normalize=True)

    def forward(self, x):
        return self.policy(self.trunk(x))


class Value(_Plain):
    def __init__(self):
        super().__init__(policy=False, value=True)

    def forward(self, x):
        return self.value(self.trunk(x))


class PolicyValue(_Plain):
    def __init__(self):
        super().__init__(policy=True, value=True)

    def forward(self, x):
        h = self.trunk(x)
        return self.policy(h), self.value(h)


class _Block(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(192, 192, 3, pad=1, nobias=True)
            self.bn1 = L.BatchNormalization(192)
            self.conv2 = L.Convolution2D(192, 192, 3, pad=1, nobias=True)
            self.bn2 = L.BatchNormalization(192)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(x + self.bn2(self.conv2(h)))


class PolicyValueResnet(chainer.Chain):
    def __init__(self, blocks=5):
        super().__init__()
        self.blocks = blocks
        with self.init_scope():
            self.l1 = L.Convolution2D(104, 192, 3, pad=1)
            for n in range(1, blocks):
                setattr(self, f"b{n}", _Block())
            self.policy = L.Convolution2D(192, 27, 1, nobias=True)
            self.policy_bias = L.Bias(shape=(2187,))
            self.value1 = L.Convolution2D(192, 27, 1)
            self.value1_bn = L.BatchNormalization(27)
            self.value2 = L.Linear(2187, 256)
            self.value3 = L.Linear(256, 1)

    def forward(self, x):
        h = F.relu(self.l1(x))
        for n in range(1, self.blocks):
            h = self[f"b{n}"](h)
        value = F.relu(self.value2(F.relu(self.value1_bn(self.value1(h)))))
        logits = self.policy_bias(F.reshape(self.policy(h), (-1, 2187)))
        return logits, self.value3(value)


#: Each network by the name of its counterpart in the package.
BOOKS = {
    "policy": Policy,
    "policy_bn": PolicyBN,
    "value": Value,
    "policy_value": PolicyValue,
    "policy_value_resnet": PolicyValueResnet,
}
