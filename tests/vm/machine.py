"""The host's side of a VM run: the image, the payload, qemu, and what the guest reported."""
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import exporter as apu  # noqa: E402

BUILD_DEADLINE = 400  # seconds; under a minute on an idle machine
RUN_DEADLINE = 450  # seconds; under 4 minutes on two cores
EVIDENCE = 200  # lines of a log in the message of a failure
UNITS = "etc/systemd/system"


class Block:
    """What one scenario reported."""

    def __init__(self):
        self.facts, self.metrics, self.texts = {}, {}, {}
        self.errors, self.late = [], []


def whole_lines(report):
    """Without the last line's part, where the guest writes still or was cut off."""
    return report[:report.rfind("\n") + 1].replace("\r", "").splitlines()


def is_done(report):
    return whole_lines(report)[-1:] == ["DONE"]


class Results:
    """The guest's report, see README.md."""

    def __init__(self, report):
        self.blocks = {}
        self.is_done = is_done(report)
        lines = iter(whole_lines(report))
        block = Block()
        for line in lines:
            word, _, rest = line.partition(" ")
            if word == "BEGIN":
                block = self.blocks[rest] = Block()
            elif word == "FACT":
                key, _, value = rest.partition(" ")
                block.facts[key] = value
            elif word == "METRICS":
                block.metrics[rest] = apu.parse_samples("\n".join(self._until_end(lines)))
            elif word == "TEXT":
                block.texts[rest] = "\n".join(line[1:] for line in self._until_end(lines))
            elif word == "ERROR":
                block.errors.append(rest)
            elif word == "LATE":
                block.late.append(rest)

    @staticmethod
    def _until_end(lines):
        return list(iter(lambda: next(lines, "END"), "END"))

    def __getitem__(self, scenario):
        return self.blocks.get(scenario) or Block()


# --- what is built


def run_build(command, deadline, what):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", timeout=deadline, check=False)
    if done.returncode == apu.CANNOT_RUN:
        apu.cannot_run(done.stderr.strip().splitlines()[-1].removeprefix("cannot run here: "))
    if done.returncode != 0:
        raise RuntimeError(f"{what}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def build_image():
    output = run_build([HERE / "build_image.sh", apu.BINARY], BUILD_DEADLINE, "building the image")
    return pathlib.Path(output.splitlines()[-1])


def build_module(image, folder):
    shutil.copytree(HERE / "module", folder)  # kbuild writes beside the sources
    run_build(["make", "-C", image / "headers/build", f"M={folder}", "modules"], BUILD_DEADLINE,
              "building the module")
    return folder / "apu_testmod.ko"


def payload_files(module):
    """(file of the host, path in the guest); the exporter is installed as deploy/README.md says."""
    deploy = apu.ROOT / "deploy/systemd"
    yield apu.BINARY, "usr/bin/apu_exporter"
    yield deploy / "apu-exporter.service", f"{UNITS}/apu-exporter.service"
    yield deploy / "apu.slice", f"{UNITS}/apu.slice"
    yield deploy / "apu-exporter.default", "etc/default/apu-exporter"
    yield module, "opt/apu-vm/apu_testmod.ko"
    yield HERE / "guest/apu-vm-guest.service", f"{UNITS}/apu-vm-guest.service"
    gpu = apu.FIXTURES / "strix_halo_healthy/sys"
    for path in ("bus/pci", "class/drm", "devices", "module/amdgpu"):
        yield gpu / path, f"opt/apu-vm/sys/{path}"
    for script in sorted((HERE / "guest").rglob("*.py")):
        yield script, f"opt/apu-vm/{script.relative_to(HERE / 'guest')}"


def as_root(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def write_payload(module, target):
    """A tar file that is a disk of the VM; its initramfs unpacks it over the root."""
    with tarfile.open(target, "w") as tar:
        for source, path in payload_files(module):
            tar.add(source, path, filter=as_root)
        link = tarfile.TarInfo(f"{UNITS}/multi-user.target.wants/apu-vm-guest.service")
        link.type, link.linkname = tarfile.SYMTYPE, "../apu-vm-guest.service"
        tar.addfile(link)


# --- the run


def qemu_command(image, folder):
    return ["qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
            "-m", "1024", "-nodefaults", "-no-reboot", "-display", "none",
            "-serial", f"file:{folder}/console.log", "-serial", f"file:{folder}/result.log",
            "-kernel", image / "vmlinuz", "-initrd", image / "initrd.gz", "-append",
            "console=ttyS0 quiet loglevel=3 mitigations=off psi=1 rw net.ifnames=0",
            # The image stays as it was built: changes go to a file that is gone with qemu.
            "-drive", f"file={image}/root.img,format=raw,if=virtio,cache=unsafe,snapshot=on",
            "-drive", f"file={folder}/payload.tar,format=raw,if=virtio,readonly=on"]


def read_log(path):
    return path.read_text(errors="replace") if path.exists() else ""


def boot(image, folder):
    """Runs the VM until it has reported all or its time is over."""
    write_payload(build_module(image, folder / "module"), folder / "payload.tar")
    # timeout ends qemu even if this process is killed.
    qemu = subprocess.Popen(["timeout", "-k", "5", str(RUN_DEADLINE), *qemu_command(image, folder)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            text=True, errors="replace")
    try:
        while qemu.poll() is None and not is_done(read_log(folder / "result.log")):
            time.sleep(0.5)
        qemu.wait(timeout=apu.DEADLINE)  # the guest switches itself off
    except subprocess.TimeoutExpired:
        pass
    finally:
        qemu.terminate()  # and with it, through timeout, the VM
    return qemu.communicate()[1]


class Run:
    """One run of the VM, over when this returns."""

    def __init__(self):
        image = build_image()
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="apu-vm-") as name:
            folder = pathlib.Path(name)
            self.qemu_says = boot(image, folder)
            self.console = read_log(folder / "console.log")
            self.report = read_log(folder / "result.log")
        self.seconds = time.monotonic() - start
        self.results = Results(self.report)

    def evidence(self):
        """What helps to understand a failure."""
        parts = [("qemu", self.qemu_says), ("console", self.console),
                 ("journal of the guest", self.results["end"].texts.get("journal", ""))]
        if not self.results.is_done:
            parts.append(("report of the guest, which is not complete", self.report))
        for name, block in self.results.blocks.items():
            parts += [(f"{name}: {kind}", block.texts[kind]) for kind in ("traceback", "output")
                      if kind in block.texts]
        return "\n".join(f"--- {title}\n{last_lines(text)}" for title, text in parts if text.strip())


def last_lines(text):
    return "\n".join(text.splitlines()[-EVIDENCE:])
