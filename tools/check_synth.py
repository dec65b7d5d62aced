#!/usr/bin/env python3
"""Shows that the synthetic set is neither trivial nor hopeless.

    check_synth.py [--program build/latent] [FOLDER]

Without FOLDER it has the program write a set of 10,000 + 2,000 images into a temporary folder. It then
trains a logistic regression on the raw pixels (scikit-learn) and a small convolutional net (PyTorch), and
prints both test accuracies. Exit status 1 when the linear one reaches 60 % or the net stays at 90 % or below.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

LINEAR_BELOW, NET_ABOVE = 60.0, 90.0


def read(paths):
    """Images as float32 [n, 3, 32, 32] in 0..1, and their labels."""
    records = np.concatenate([np.fromfile(path, np.uint8).reshape(-1, 3073) for path in paths])
    return records[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32) / 255, records[:, 0].astype(np.int64)


def linear_accuracy(train, test):
    """The best test accuracy over three strengths of regularization: the benefit of the doubt. The principal
    components are a linear map too: they only make the fit quicker and steadier."""
    best = 0.0
    scale = make_pipeline(StandardScaler(), PCA(200, random_state=0))
    x, x_test = (scale.fit_transform(train[0].reshape(len(train[0]), -1)),
                 scale.transform(test[0].reshape(len(test[0]), -1)))
    for c in (1e-4, 1e-3, 1e-2):
        model = LogisticRegression(C=c, max_iter=500, tol=1e-3).fit(x, train[1])
        best = max(best, 100 * model.score(x_test, test[1]))
    return best


def net_accuracy(train, test, epochs):
    torch.manual_seed(0)
    torch.set_num_threads(2)

    def block(inputs, outputs):
        return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
                nn.MaxPool2d(2)]

    net = nn.Sequential(*block(3, 32), *block(32, 64), *block(64, 128), nn.Flatten(), nn.Dropout(0.3),
                        nn.Linear(128 * 16, 10))
    x, y = (torch.from_numpy(part) for part in train)
    x_test, y_test = (torch.from_numpy(part) for part in test)
    steps = epochs * ((len(x) + 127) // 128)
    optimizer = torch.optim.AdamW(net.parameters(), weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=steps)
    for epoch in range(epochs):
        net.train()
        for batch in torch.randperm(len(x)).split(128):
            loss = nn.functional.cross_entropy(net(x[batch] - 0.5), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        net.eval()
        with torch.no_grad():
            guess = torch.cat([net(part - 0.5).argmax(1) for part in x_test.split(500)])
        accuracy = 100 * (guess == y_test).float().mean().item()
        print(f"  epoch {epoch + 1:2d}/{epochs}: {accuracy:5.1f} %", file=sys.stderr)
    return accuracy


def check(folder, epochs):
    batches = sorted(folder.glob("data_batch_*.bin"))
    if not batches:
        sys.exit(f"{folder}: no data_batch_*.bin; give the folder of a data set")
    train, test = read(batches), read([folder / "test_batch.bin"])
    linear = linear_accuracy(train, test)
    print(f"linear classifier on raw pixels: {linear:5.1f} %  (must stay under {LINEAR_BELOW:.0f} %)", flush=True)
    net = net_accuracy(train, test, epochs)
    print(f"small convolutional net:         {net:5.1f} %  (must pass {NET_ABOVE:.0f} %)")
    return 0 if linear < LINEAR_BELOW and net > NET_ABOVE else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, help="an existing set; default: a new one")
    parser.add_argument("--program", default="build/latent", help="the program that writes the new set")
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    if options.folder:
        return check(options.folder, options.epochs)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "set"
        subprocess.run([options.program, "data", "synth", str(folder), "--train", "10000", "--test", "2000"],
                       check=True)
        return check(folder, options.epochs)


if __name__ == "__main__":
    sys.exit(main())
