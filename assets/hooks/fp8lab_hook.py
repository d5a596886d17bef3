"""Logs what the tensors of a PyTorch training look like, for `fp8lab watch` and the Workbench. Needs torch only.

    from fp8lab_hook import Watch

    watch = Watch(model, "run.jsonl", every=10, recipe="bf16")
    for batch in batches:
        loss = train_on(batch)         # forward, backward, optimizer.step()
        watch.step(loss)

Of every linear layer it takes the input (NAME.x), the weight (NAME.w) and the gradient of the output (NAME.dy), the three
tensors that FP8 training casts. It writes their largest and smallest magnitude and how many elements lie in each binade;
not one value of the model leaves the program. It changes nothing in the training, and once constructed it does not stop it:
what cannot be logged is told on stderr, once.

Line 1 of the file is {"fp8lab":1,"kinds":"xwd","every":10,...}. Then, per step and tensor,
    {"step":0,"tensor":"a.x","n":64,"nan":0,"inf":0,"zero":1,"amax":2.5,"amin":0.1,"top":1,"bins":[3,20,40]}
bins[k] elements have floor(log2|x|) = top - k; bin 63 has all below, trailing zeros are left out. {"step":0,"loss":1.25}
is the loss. What several forwards and backwards of one optimizer step see is added up; weights are taken once a step. In a
distributed run give each rank a file of its own. Forwards without gradients (evaluation) are not logged.
"""
import atexit
import json
import re
import sys
import weakref

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


def first_tensor(value):
    """The tensor, or the first one in a list, tuple or dictionary; None where there is none."""
    if torch.is_tensor(value):
        return value
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return None
    return next((each for each in value if torch.is_tensor(each)), None)


def create(path, overwrite, **head):
    """A new log with its first line."""
    line = json.dumps(dict(fp8lab=1, **head), separators=(",", ":")) + "\n"
    try:
        file = open(path, "w" if overwrite else "x")
    except FileExistsError:
        raise FileExistsError(f"fp8lab_hook: {path} exists: name another file, or overwrite=True") from None
    file.write(line)
    return file


class LayerHook:
    """The forward hook of one layer. A copy of it, of a copied or loaded model, logs nothing."""

    def __init__(self, watch, name):
        self.watch, self.name = watch, name

    def __reduce__(self):
        return LayerHook, (None, self.name)

    def __call__(self, module, inputs, keywords, output):
        if self.watch is not None:
            self.watch._guarded(self.name, self.watch._take, self.name, module, inputs, keywords, output)


class Watch:
    """Logs the linear layers of `model` into `path`.

    every      one optimizer step of so many is logged
    names      a regular expression that the names of the layers match as a whole
    kinds      which tensors: x inputs, w weights, d gradients of outputs
    types      the classes of modules that are linear layers: their `weight` is taken, if they have one
    overwrite  replaces a file that is there; without it that is an error
    recipe     what the run trains in, as in `fp8lab list recipes`; other keywords go into the first line as they are
    """

    def __init__(self, model, path, every=1, names=".*", kinds="xwd", types=(torch.nn.Linear,), overwrite=False, **about):
        if int(every) != every or every < 1:
            raise ValueError(f"fp8lab_hook: every is {every}: it is a whole number from 1 on")
        if not kinds or set(kinds) - set("xwd"):
            raise ValueError(f"fp8lab_hook: kinds is {kinds!r}: it has letters of x, w and d")
        layers = [(name, module) for name, module in model.named_modules()
                  if isinstance(module, types) and re.fullmatch(names, name)]
        if not layers:
            raise ValueError(f"fp8lab_hook: no layer of {types} has a name that matches {names!r}")
        self.every, self.kinds, self.now, self.counted, self.losses = int(every), kinds, 0, {}, []
        self.told, self.called = set(), set()
        self.file = create(path, overwrite, kinds=kinds, every=self.every, torch=torch.__version__, **about)
        self.layers = [name for name, _ in layers]
        self.handles = [module.register_forward_hook(LayerHook(self, name), with_kwargs=True) for name, module in layers]
        # Losses that are left are written where an exception ends the program.
        me = weakref.ref(self)
        atexit.register(lambda: me() and me().close())

    def _write(self, **line):
        self.file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def _tell(self, about, words):
        if about in self.told:
            return
        self.told.add(about)
        try:
            print("fp8lab_hook: " + words, file=sys.stderr)
        except Exception:
            pass

    def _guarded(self, about, what, *arguments):
        # A log is never worth a training.
        try:
            what(*arguments)
        except Exception as error:
            self._tell(about, f"{about} is not logged: {type(error).__name__}: {error}")

    def _add(self, name, tensor):
        new, old = count(tensor), self.counted.get(name)
        if old:
            new = old[0] + new[0], torch.maximum(old[1], new[1]), torch.minimum(old[2], new[2])
        self.counted[name] = new

    def _logs(self):
        return self.now % self.every == 0

    def _take(self, name, module, inputs, keywords, output):
        if not self._logs() or not torch.is_grad_enabled() or self.file.closed:
            return
        self.called.add(name)
        x = first_tensor(inputs)
        if x is None:
            x = first_tensor(keywords)
        if "x" in self.kinds and x is not None:
            self._add(name + ".x", x)
        weight = getattr(module, "weight", None)
        if "w" in self.kinds and torch.is_tensor(weight) and name + ".w" not in self.counted:
            self._add(name + ".w", weight)
        y, step = first_tensor(output), self.now
        if "d" in self.kinds and y is not None and y.requires_grad:
            y.register_hook(lambda gradient: self._take_gradient(name + ".dy", step, gradient))

    def _take_gradient(self, name, step, gradient):
        if step == self.now:  # else it belongs to a step that is written already
            self._guarded(name, self._add, name, gradient)

    def step(self, loss=None):
        """Ends an optimizer step: writes what was counted since the last call, and the loss."""
        self._guarded("a step", self._end_step, loss)
        self.counted.clear()
        self.now += 1

    def _end_step(self, loss):
        if torch.is_tensor(loss):
            loss = loss.detach().clone() if loss.numel() == 1 else loss.detach().float().mean()
        if loss is not None:
            self.losses.append((self.now, loss))
        if not self._logs():
            return
        self._write_losses(before=self.now)
        for name, counted in self.counted.items():
            self._write(step=self.now, tensor=name, **record(counted))
        self._write_losses(before=self.now + 1)
        self.file.flush()
        silent = [name for name in self.layers if name not in self.called]
        if silent:
            more = f" and {len(silent) - 5} more" if len(silent) > 5 else ""
            self._tell("silent", f"not called in step {self.now}, so that nothing is logged of: {', '.join(silent[:5])}{more}")

    def _write_losses(self, before):
        # Those of the steps between are kept until a step is logged: to read one waits for the GPU.
        kept, self.losses = self.losses, [(step, loss) for step, loss in self.losses if step >= before]
        for step, loss in kept:
            if step < before:
                self._write(step=step, loss=float(loss))

    def close(self):
        """Takes the hooks off the model, writes the losses that are left and closes the file."""
        for handle in self.handles:
            handle.remove()
        self.handles.clear()
        if not self.file.closed:
            self._guarded("the end", self._write_losses, self.now)
            self._guarded("the end", self.file.close)


class InspectLogger(BaseLogger):
    """All digits of what nvidia-dlfw-inspect measures; its own log keeps four decimals, so that small gradients read 0.

        debug_api.initialize(..., statistics_logger=InspectLogger("run.jsonl"))
    """

    def __init__(self, path, overwrite=False):
        self.file = create(path, overwrite)
        self.failed = False

    def log_scalar(self, name, value, iteration, **_):
        try:
            line = dict(step=int(iteration), name=name, value=float(value))
            self.file.write(json.dumps(line, separators=(",", ":")) + "\n")
            self.file.flush()
        except Exception as error:
            if not self.failed:
                print(f"fp8lab_hook: {name} is not logged: {type(error).__name__}: {error}", file=sys.stderr)
            self.failed = True
