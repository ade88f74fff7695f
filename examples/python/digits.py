"""Trains a small classifier of handwritten digits. Usage: digits.py DIGITS.csv [DEVICE] [EPOCHS]

The file has a digit in each row, 64 pixels from 0 to 16 and the label, packed by gzip or not.
"""
import sys

import prismrt as prism
from prismrt import data, nn, optim

prism.set_default_device(sys.argv[2] if len(sys.argv) > 2 else "cpu")
epochs = int(sys.argv[3]) if len(sys.argv) > 3 else 12


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                                          nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten())
        self.dropout = nn.Dropout(0.2)
        self.output = nn.Linear(32 * 4 * 4, 10)

    def forward(self, x):
        return self.output(self.dropout(self.convolutions(x)))


table = data.load_csv(sys.argv[1]).to(prism.default_device())
images, labels = (table[:, :64] / 16).reshape(-1, 1, 8, 8).eval(), table[:, 64].astype("int32").eval()
held_back = 300  # for the test

prism.seed(1)
model = Classifier()
print(model.summary())
loader = data.DataLoader((images[held_back:], labels[held_back:]), batch_size=64, seed=1)
schedule = optim.warm_up(20, optim.cosine_schedule(epochs * len(loader) - 20))
optimizer = optim.AdamW(model.parameters(), lr=0.01, schedule=schedule)
# Forward pass, backward pass, clipping and update are one plan, made at the first step.
step = nn.TrainStep(optimizer, lambda x, y: nn.cross_entropy(model(x), y), clip_norm=1.0)
for epoch in range(epochs):
    model.train()
    for batch in loader:
        loss = step(*batch)
    model.eval()
    right = (model(images[:held_back]).argmax(1) == labels[:held_back]).astype("float32").mean()
    print(f"epoch {epoch + 1}, loss {loss.item():.4f}, {100 * right.item():.1f}% of the test right")
