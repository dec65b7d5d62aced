#!/usr/bin/env python3
"""Golden answers of scikit-learn for the tests of support vector machines.

usage: tools/make_svm_golden.py FOLDER        (needs numpy and scikit-learn)

Writes FOLDER/svm_rbf.safetensors and FOLDER/svm_linear.safetensors: a training set, a test set and what
sklearn.svm.SVC says about them: gamma, dual objective of every pair, thresholds, decision values of the test
rows (one versus one), labels. scikit-learn solves with its own copy of LIBSVM in float64; the tolerance is
tight, so that the numbers are those of the optimum. Class weights are part of the second set.
"""
import json
import struct
import sys

import numpy as np
from sklearn.svm import SVC


def write(path, tensors, metadata):
    names = {np.dtype("float32"): "F32", np.dtype("float64"): "F64", np.dtype("int32"): "I32"}
    header, data = {"__metadata__": metadata}, b""
    for name, array in tensors.items():
        array = np.ascontiguousarray(array)
        header[name] = {
            "dtype": names[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + array.nbytes],
        }
        data += array.tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def make_rows(random, n, d, classes):
    centers = random.standard_normal((classes, d))
    y = random.integers(0, classes, n)
    y[:classes] = np.arange(classes)  # so that classes are first seen in the order of their labels
    return (centers[y] + random.standard_normal((n, d))).astype(np.float32), y.astype(np.int32)


def objectives(machine, x, y, kernel):
    """Dual objective of each pair, in float64, out of the machine's own coefficients."""
    starts = np.concatenate([[0], np.cumsum(machine.n_support_)])
    k = len(machine.classes_)
    values = []
    for a in range(k):
        for b in range(a + 1, k):
            rows = np.r_[starts[a] : starts[a + 1], starts[b] : starts[b + 1]]
            beta = np.r_[
                machine.dual_coef_[b - 1, starts[a] : starts[a + 1]], machine.dual_coef_[a, starts[b] : starts[b + 1]]
            ]
            vectors = x[machine.support_[rows]].astype(np.float64)
            values.append(0.5 * beta @ kernel(vectors) @ beta - np.abs(beta).sum())
    return np.array(values)


def make(path, seed, c, weights, kernel_name):
    random = np.random.default_rng(seed)
    x, y = make_rows(random, 120, 6, 4)
    test, _ = make_rows(random, 40, 6, 4)
    machine = SVC(C=c, kernel=kernel_name, gamma="scale", tol=1e-6, class_weight=weights, decision_function_shape="ovo")
    machine.fit(x.astype(np.float64), y)
    gamma = machine._gamma

    def kernel(v):
        if kernel_name == "linear":
            return v @ v.T
        return np.exp(-gamma * ((v[:, None] - v[None]) ** 2).sum(-1))

    write(
        path,
        {
            "x": x,
            "y": y,
            "test": test,
            "gamma": np.array([gamma]),
            "objective": objectives(machine, x, y, kernel),
            "rho": -machine.intercept_,
            "decisions": machine.decision_function(test.astype(np.float64)),
            "labels": machine.predict(test.astype(np.float64)).astype(np.int32),
        },
        {"c": repr(c), "kernel": kernel_name, "weights": json.dumps(weights or {})},
    )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    make(sys.argv[1] + "/svm_rbf.safetensors", 11, 10.0, None, "rbf")
    make(sys.argv[1] + "/svm_linear.safetensors", 12, 0.5, {1: 4.0, 3: 0.5}, "linear")


main()
