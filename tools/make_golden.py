#!/usr/bin/env python3
"""Makes tests/golden/*.safetensors: answers of PyTorch in float64 that the reference is checked against.

    tools/make_golden.py [FOLDER]        needs torch and numpy; same versions, same bytes

conv.safetensors
    For each case "NAME": tensors NAME.x [n,H,W,C], NAME.w [K,R,S,C], NAME.b [K] (absent without bias),
    NAME.dy and NAME.y [n,PH,PW,K], NAME.dx, NAME.dw, NAME.db; all F64 in the engine's own order (NHWC, OHWI).
    The metadata key NAME holds sixteen numbers: n H W C K R S stride top left bottom right up2 bias relu pool2
    (top .. right: the padding). The key "cases" lists the names, separated by spaces.

trajectory.safetensors
    Ten training steps of a narrow autoencoder on one fixed batch, for each of three optimizers.
    images                 U8 [8,32,32,3] (NHWC): the batch; the net sees images / 255
    LAYER.weight           F32 [O,I,H,W], LAYER.bias F32 [O]: the initial weights under PyTorch's names
    losses_adam, losses_sgd, losses_adamw
                           F64 [10]: the mean squared error before each of the ten steps
    metadata               net: the text of the net file; and for each optimizer X in adam, sgd, adamw, as
                           decimal numbers: lr_X, momentum_X (beta1 for Adam), beta2_X, epsilon_X,
                           weight_decay_X (coupled for adam and sgd, decoupled for adamw)
    The losses are computed in float64 from the float32 weights and pixels; the script fails unless the same
    steps in float32 agree within a relative 2e-6, so that 1e-5 is a fair bar for any fp32 engine.
"""
import json
import pathlib
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F

NET = """# a narrow autoencoder for the golden trajectory
input 32x32x3
conv enc_conv1 8 3x3 relu pool2
conv enc_conv2 6 3x3 relu pool2
latent
conv dec_conv1 6 3x3 relu
conv dec_conv2 8 3x3 relu up2
conv dec_conv3 3 3x3      up2
loss mse

train epochs 1 batch 8 optimizer adam lr 1e-3
"""

# name: n H W C  K R S  stride  top left bottom right  up2 bias relu pool2
CASES = {
    "plain": (2, 5, 4, 3, 4, 3, 3, 1, 1, 1, 1, 1, 0, 1, 0, 0),
    "relu": (2, 4, 5, 2, 5, 3, 3, 1, 1, 1, 1, 1, 0, 1, 1, 0),
    "valid": (1, 6, 5, 3, 2, 3, 2, 1, 0, 0, 0, 0, 0, 1, 1, 0),
    "one_by_one": (3, 3, 3, 5, 4, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0),
    "stride2": (2, 7, 6, 3, 4, 3, 3, 2, 1, 1, 1, 1, 0, 1, 1, 0),
    "stride3": (1, 8, 9, 2, 3, 2, 2, 3, 0, 0, 0, 0, 0, 1, 0, 0),
    "even_same": (2, 4, 5, 2, 3, 4, 2, 1, 1, 0, 2, 1, 0, 1, 1, 0),
    "uneven_padding": (1, 5, 4, 2, 3, 3, 3, 1, 2, 0, 1, 2, 0, 0, 1, 0),
    "five": (1, 5, 6, 2, 3, 5, 5, 1, 2, 2, 2, 2, 0, 1, 1, 0),
    "pool": (2, 6, 4, 3, 4, 3, 3, 1, 1, 1, 1, 1, 0, 1, 1, 1),
    "pool_odd": (2, 7, 5, 2, 4, 3, 3, 1, 1, 1, 1, 1, 0, 1, 1, 1),
    "pool_linear": (1, 5, 6, 3, 4, 3, 3, 1, 1, 1, 1, 1, 0, 1, 0, 1),
    "up": (2, 3, 4, 3, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 0),
    "up_linear": (1, 4, 3, 4, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 0, 0),
    "up_valid_stride2": (1, 4, 5, 2, 3, 3, 3, 2, 0, 0, 0, 0, 1, 1, 1, 0),
    "up_pool": (1, 3, 5, 2, 3, 5, 3, 1, 2, 1, 2, 1, 1, 0, 1, 1),
}

OPTIMIZERS = {
    "adam": {"lr": 1e-3, "momentum": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0},
    "sgd": {"lr": 0.1, "momentum": 0.9, "beta2": 0.0, "epsilon": 0.0, "weight_decay": 1e-4},
    "adamw": {"lr": 2e-3, "momentum": 0.9, "beta2": 0.99, "epsilon": 1e-8, "weight_decay": 0.01},
}


def write_safetensors(path, tensors, metadata):
    """The format's few lines: length of the header, the header padded to 8 bytes, the tensors."""
    names = {"float64": "F64", "float32": "F32", "uint8": "U8"}
    header, place = {"__metadata__": metadata}, 0
    for name, values in tensors.items():
        header[name] = {
            "dtype": names[str(values.dtype)],
            "shape": list(values.shape),
            "data_offsets": [place, place + values.nbytes],
        }
        place += values.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(np.ascontiguousarray(values).tobytes())
    print(f"{path}: {path.stat().st_size} bytes")


def conv(x, w, b, stride, pad, up2, relu, pool2):
    top, left, bottom, right = pad
    if up2:
        x = F.interpolate(x, scale_factor=2, mode="nearest")
    z = F.conv2d(F.pad(x, (left, right, top, bottom)), w, b, stride=stride)
    if relu:
        z = F.relu(z)
    return F.max_pool2d(z, 2) if pool2 else z


def channels_last(t):
    return t.detach().permute(0, 2, 3, 1).contiguous().numpy()


def conv_cases(generator):
    tensors = {}
    for name, (n, H, W, C, K, R, S, stride, top, left, bottom, right, up2, bias, relu, pool2) in CASES.items():
        def draw(*shape):
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        x = draw(n, C, H, W).requires_grad_()
        w = draw(K, C, R, S).requires_grad_()
        b = draw(K).requires_grad_() if bias else None
        y = conv(x, w, b, stride, (top, left, bottom, right), up2, relu, pool2)
        dy = draw(*y.shape)
        y.backward(dy)
        tensors[f"{name}.x"], tensors[f"{name}.w"] = channels_last(x), channels_last(w)
        tensors[f"{name}.y"], tensors[f"{name}.dy"] = channels_last(y), channels_last(dy)
        tensors[f"{name}.dx"], tensors[f"{name}.dw"] = channels_last(x.grad), channels_last(w.grad)
        if bias:
            tensors[f"{name}.b"], tensors[f"{name}.db"] = b.detach().numpy(), b.grad.numpy()
    metadata = {name: " ".join(map(str, numbers)) for name, numbers in CASES.items()}
    return tensors, {"cases": " ".join(CASES), **metadata}


LAYERS = [  # name, in, out, up2, relu, pool2
    ("enc_conv1", 3, 8, 0, 1, 1),
    ("enc_conv2", 8, 6, 0, 1, 1),
    ("dec_conv1", 6, 6, 0, 1, 0),
    ("dec_conv2", 6, 8, 1, 1, 0),
    ("dec_conv3", 8, 3, 1, 0, 0),
]


def forward(parameters, x):
    for name, _, _, up2, relu, pool2 in LAYERS:
        w, b = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
        x = conv(x, w, b, 1, (1, 1, 1, 1), up2, relu, pool2)
    return x


def train(initial, pixels, optimizer, options, dtype):
    parameters = {name: value.to(dtype).clone().requires_grad_() for name, value in initial.items()}
    shared = {"lr": options["lr"], "weight_decay": options["weight_decay"]}
    if optimizer == "sgd":
        step = torch.optim.SGD(parameters.values(), momentum=options["momentum"], **shared)
    else:
        kind = torch.optim.Adam if optimizer == "adam" else torch.optim.AdamW
        betas = (options["momentum"], options["beta2"])
        step = kind(parameters.values(), betas=betas, eps=options["epsilon"], **shared)
    x = pixels.to(dtype)
    losses = []
    for _ in range(10):
        step.zero_grad()
        loss = F.mse_loss(forward(parameters, x), x)
        losses.append(loss.item())
        loss.backward()
        step.step()
    return np.array(losses)


def trajectory(generator):
    images = torch.randint(0, 256, (8, 32, 32, 3), generator=generator, dtype=torch.uint8)
    pixels = images.permute(0, 3, 1, 2).to(torch.float32) / 255
    initial = {}
    for name, inputs, outputs, *_ in LAYERS:
        scale = (2 / (inputs * 9)) ** 0.5
        initial[f"{name}.weight"] = torch.randn(outputs, inputs, 3, 3, generator=generator) * scale
        initial[f"{name}.bias"] = torch.randn(outputs, generator=generator) * 0.1
    tensors = {"images": images.numpy()}
    tensors.update({name: value.numpy() for name, value in initial.items()})
    metadata = {"net": NET}
    for optimizer, options in OPTIMIZERS.items():
        losses = train(initial, pixels, optimizer, options, torch.float64)
        single = train(initial, pixels, optimizer, options, torch.float32)
        apart = np.max(np.abs(single / losses - 1))
        print(f"{optimizer}: loss {losses[0]:.6f} to {losses[-1]:.6f}, float32 within {apart:.1e}")
        if apart > 2e-6:
            sys.exit(f"the {optimizer} trajectory is too sensitive to be golden")
        tensors[f"losses_{optimizer}"] = losses
        metadata.update({f"{key}_{optimizer}": repr(value) for key, value in options.items()})
    return tensors, metadata


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    write_safetensors(folder / "conv.safetensors", *conv_cases(torch.Generator().manual_seed(1)))
    write_safetensors(folder / "trajectory.safetensors", *trajectory(torch.Generator().manual_seed(2)))


if __name__ == "__main__":
    main()
