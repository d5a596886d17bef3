"""Logs what the tensors of a PyTorch training look like, for `fp8lab watch` and the Workbench. Needs torch only.

    from fp8lab_hook import Watch

    watch = Watch(model, "run.jsonl", every=10, recipe="bf16")
    for batch in batches:
        loss = train_on(batch)         # forward, backward, optimizer.step()
        watch.step(loss)

Of every linear layer it takes the input (NAME.x), the weight (NAME.w) and the gradient of the output (NAME.dy), the three
tensors that FP8 training casts. It writes their largest and smallest magnitude and how many elements lie in each binade;
not one value of the model leaves the program. It changes nothing in the training.

Line 1 of the file is {"fp8lab":1,"kinds":"xwd","every":10,...}. Then, per step and tensor,
    {"step":0,"tensor":"a.x","n":64,"nan":0,"inf":0,"zero":1,"amax":2.5,"amin":0.1,"top":1,"bins":[3,20,40]}
bins[k] elements have floor(log2|x|) = top - k; bin 63 has all below, trailing zeros are left out. {"step":0,"loss":1.25}
is the loss. Micro-batches of one optimizer step are added up; weights are taken once a step. In a distributed run give
each rank a file of its own. Forwards without gradients (evaluation) are not logged.
"""
import json
import re

import torch

try:
    from nvdlfw_inspect.logging import BaseLogger
except ImportError:
    BaseLogger = object

BINS = 64
# The counters of a tensor: zeros, binades from 2^-149 to 2^127 (float32 has no others), NaN, Inf.
LOWEST, HIGHEST = -149, 127
NAN = HIGHEST - LOWEST + 2
INF = NAN + 1


def count(tensor):
    """The counters, the largest and the smallest non-zero finite magnitude, on the tensor's device."""
    magnitude = tensor.detach().reshape(-1).float().abs()
    _, exponent = torch.frexp(magnitude)  # magnitude is in [2^(exponent - 1), 2^exponent)
    slot = (exponent - LOWEST).masked_fill_(magnitude == 0, 0)
    is_nan, is_inf = torch.isnan(magnitude), torch.isinf(magnitude)
    slot.masked_fill_(is_nan, NAN).masked_fill_(is_inf, INF)
    # histc is four times as fast on a GPU and does not wait for it; on a CPU it takes no integers.
    if slot.is_cuda:
        counters = torch.histc(slot, INF + 1, 0, INF).long()
    else:
        counters = torch.bincount(slot, minlength=INF + 1)
    odd = is_nan | is_inf
    if magnitude.numel() == 0:
        return counters, magnitude.new_zeros(()), magnitude.new_full((), torch.inf)
    largest = magnitude.masked_fill(odd, 0).amax()
    smallest = magnitude.masked_fill_(odd | (magnitude == 0), torch.inf).amin()
    return counters, largest, smallest


def record(counted):
    """The members of a line from what count() gave."""
    counters, largest, smallest = counted[0].tolist(), float(counted[1]), float(counted[2])
    binades = counters[1:NAN]
    used = [i for i, n in enumerate(binades) if n]
    line = dict(n=sum(counters), nan=counters[NAN], inf=counters[INF], zero=counters[0])
    if not used:
        return dict(line, amax=0.0, amin=0.0, top=None, bins=[])
    top = used[-1]
    bins = binades[top::-1][:top - used[0] + 1]
    if len(bins) > BINS:
        bins = bins[:BINS - 1] + [sum(bins[BINS - 1:])]
    return dict(line, amax=largest, amin=smallest, top=top + LOWEST, bins=bins)


class Watch:
    """Logs the linear layers of `model` into `path`.

    every    one optimizer step of so many is logged
    names    a regular expression that the names of the layers match as a whole
    kinds    which tensors: x inputs, w weights, d gradients of outputs
    types    the classes of modules that are linear layers: their `weight` is taken, if they have one
    recipe   what the run trains in, as in `fp8lab list recipes`; other keywords go into the first line as they are
    """

    def __init__(self, model, path, every=1, names=".*", kinds="xwd", types=(torch.nn.Linear,), **about):
        self.every, self.now, self.counted, self.handles, self.losses = every, 0, {}, [], []
        self.file = open(path, "w")
        self._write(fp8lab=1, kinds=kinds, every=every, torch=torch.__version__, **about)
        for name, module in model.named_modules():
            if isinstance(module, types) and re.fullmatch(names, name):
                self.handles.append(module.register_forward_hook(self._forward(name, kinds)))

    def _write(self, **line):
        self.file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def _add(self, name, tensor):
        new, old = count(tensor), self.counted.get(name)
        if old:
            new = old[0] + new[0], torch.maximum(old[1], new[1]), torch.minimum(old[2], new[2])
        self.counted[name] = new

    def _logs(self):
        return self.now % self.every == 0

    def _forward(self, name, kinds):
        def hook(module, inputs, output):
            if not self._logs() or not torch.is_grad_enabled():
                return
            if "x" in kinds:
                self._add(name + ".x", inputs[0])
            weight = getattr(module, "weight", None)
            if "w" in kinds and weight is not None and name + ".w" not in self.counted:
                self._add(name + ".w", weight)
            output = output[0] if isinstance(output, tuple) else output
            if "d" in kinds and output.requires_grad:
                output.register_hook(lambda gradient: self._add(name + ".dy", gradient))
        return hook

    def step(self, loss=None):
        """Ends an optimizer step: writes what was counted since the last call, and the loss."""
        if loss is not None:
            self.losses.append((self.now, loss.detach().clone() if torch.is_tensor(loss) else loss))
        if self._logs():
            self._write_losses(before=self.now)
            for name, counted in self.counted.items():
                self._write(step=self.now, tensor=name, **record(counted))
            self._write_losses(before=self.now + 1)
            self.file.flush()
        self.counted.clear()
        self.now += 1

    def _write_losses(self, before):
        # Those of the steps between are kept until a step is logged: to read one waits for the GPU.
        for step, loss in self.losses:
            if step < before:
                self._write(step=step, loss=float(loss))
        self.losses = [(step, loss) for step, loss in self.losses if step >= before]

    def close(self):
        """Takes the hooks off the model, writes the losses that are left and closes the file."""
        for handle in self.handles:
            handle.remove()
        self.handles.clear()
        self._write_losses(before=self.now)
        self.file.close()


class InspectLogger(BaseLogger):
    """All digits of what nvidia-dlfw-inspect measures; its own log keeps four decimals, so that small gradients read 0.

        debug_api.initialize(..., statistics_logger=InspectLogger("run.jsonl"))
    """

    def __init__(self, path):
        self.file = open(path, "w")
        self.file.write('{"fp8lab":1}\n')

    def log_scalar(self, name, value, iteration, **_):
        line = dict(step=int(iteration), name=name, value=float(value))
        self.file.write(json.dumps(line, separators=(",", ":")) + "\n")
        self.file.flush()
