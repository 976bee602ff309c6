"""Compiles what the alternatives compile, before anything is timed.

Most peers compile at the first call. Many processes do that at once and fill the caches on disk, one alternative of
one workload at a time. One that takes too long or ends its process is left out of the measurement, with the reason.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Callable

from peers.workloads import Workload

MEMORY = 90 << 30  # bytes of tensors that all processes together may hold
NEEDS_NOTHING = ("torch", "vllm")  # compile nothing


@dataclass
class Task:
    workload: Workload
    name: str
    state: str = "waiting"  # running, done, refused
    reason: str = ""
    seconds: float = 0.0

    @property
    def memory(self) -> int:
        return 4 * self.workload.bytes + (1 << 30)


@dataclass
class Plan:
    """Which task may start: within the memory, and alone as long as nobody has seen its library at work, since a
    first call may build something for all that follow."""

    tasks: list[Task]
    memory: int = MEMORY
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self) -> Task | None:
        with self.lock:
            running = [task for task in self.tasks if task.state == "running"]
            known = {task.name for task in self.tasks if task.state in ("done", "refused")}
            free = self.memory - sum(task.memory for task in running)
            for task in self.tasks:
                if task.state != "waiting" or (running and task.memory > free):
                    continue
                if task.name not in known and any(other.name == task.name for other in running):
                    continue
                task.state = "running"
                return task
            return None

    def finished(self) -> bool:
        with self.lock:
            return all(task.state in ("done", "refused") for task in self.tasks)


class Worker:
    """A process that prepares one task after another."""

    def __init__(self, command: list[str], environment: dict[str, str], log: IO[bytes]) -> None:
        self.command, self.environment, self.log = command, environment, log
        self.process: subprocess.Popen[str] | None = None
        self.answers: queue.Queue[str | None] = queue.Queue()

    def start(self) -> subprocess.Popen[str]:
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, env=self.environment, process_group=0)
        self.answers = queue.Queue()
        threading.Thread(target=self._listen, args=(self.process, self.answers), daemon=True).start()
        return self.process

    @staticmethod
    def _listen(process: subprocess.Popen[str], answers: queue.Queue[str | None]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):  # libraries print, too
                answers.put(line)
        answers.put(None)

    def stop(self) -> None:
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # its compilers, too
        self.process.wait()
        with contextlib.suppress(queue.Empty):
            while self.answers.get(timeout=5) is not None:  # until the listener is through
                pass
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):  # of what was not yet written
                if pipe is not None:
                    pipe.close()
        self.process = None

    def run(self, task: Task, seconds: float) -> str:
        """Empty, or why the task failed."""
        process = self.process or self.start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps([task.workload.id, task.name]) + "\n")
            process.stdin.flush()
            answer = self.answers.get(timeout=max(seconds, 0))
        except queue.Empty:
            self.stop()
            return f"its preparation (compiling) took more than {seconds:.0f} s"
        except OSError:
            answer = None
        if answer is None:
            code = process.wait()
            self.answers.put(None)
            self.stop()
            return f"its preparation ended the process with code {code}"
        reason: str = json.loads(answer)["reason"]
        if "CUDA error" in reason:
            self.stop()  # the device no longer works in that process: the next task gets a new one
        return reason


def prepare(workloads: list[Workload], names: list[str], command: list[str], jobs: int, seconds: float,
            task_seconds: float, environment: dict[str, str], log_path: Path,
            progress: Callable[[str], None]) -> dict[tuple[str, str], str]:
    """Runs all tasks; returns why tasks failed, by workload id and alternative. What the libraries print goes to the
    log."""
    # One small workload, at which each library builds what it builds once; then long rows, which take longest.
    smallest = min(workloads, key=lambda workload: workload.bytes)
    order = sorted(workloads, key=lambda workload: (workload is not smallest, -workload.n))
    plan = Plan([Task(workload, name) for workload in order for name in names if name not in NEEDS_NOTHING])
    end = time.monotonic() + seconds
    with log_path.open("wb") as log:
        workers = [Worker(command, environment, log) for _ in range(min(jobs, len(plan.tasks)))]
        threads = [threading.Thread(target=_serve, args=(plan, worker, end, task_seconds, progress))
                   for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for task in plan.tasks:
        if task.state == "waiting":
            task.reason = f"not prepared: the {seconds:.0f} s for compiling were over"
    return {(task.workload.id, task.name): task.reason for task in plan.tasks if task.reason}


def _serve(plan: Plan, worker: Worker, end: float, task_seconds: float, progress: Callable[[str], None]) -> None:
    while (left := end - time.monotonic()) > 0 and not plan.finished():
        task = plan.next()
        if task is None:
            time.sleep(0.05)
            continue
        began = time.monotonic()
        task.reason = worker.run(task, min(left, task_seconds))
        task.seconds = time.monotonic() - began
        with plan.lock:
            task.state = "refused" if task.reason else "done"
        if task.reason or task.seconds > 20:
            progress(f"  {task.workload.id}, {task.name}: {task.reason or 'compiled'} ({task.seconds:.0f} s)")
    worker.stop()


def worker_main(torch: Any, workloads: list[Workload]) -> None:
    """The other side: answers each task with the reason of its failure, or with an empty one."""
    from peers.alternatives import ALTERNATIVES, Missing
    from peers.measure import reason_of
    from peers.tensors import Case

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is not an answer
    by_id = {workload.id: workload for workload in workloads}
    for line in sys.stdin:
        workload_id, name = json.loads(line)
        reason = ""
        try:
            torch._dynamo.reset()
            case = Case(torch, by_id[workload_id])
            works, failure = 0, None
            for variant in ALTERNATIVES[name](case):
                try:
                    variant.call()
                    torch.cuda.synchronize()
                    works += 1
                except Exception as error:
                    failure = error
            if not works and failure is not None:
                raise failure
        except Missing as error:
            reason = str(error)
        except Exception as error:
            reason = reason_of(error)
        case = variant = None  # frees the tensors
        try:
            torch.cuda.empty_cache()
        except RuntimeError:
            pass  # the reason says already that the device failed
        answers.write(json.dumps({"reason": reason}) + "\n")
        answers.flush()


def forget_choices(folder: Path) -> None:
    """Removes the launch configurations that torch.compile chose while all cores were busy; compiled code stays."""
    for path in folder.rglob("*.best_config"):
        path.unlink(missing_ok=True)
