"""`python -m benchmarks [workload ...]`: ratios against the plain loop of the same run."""

from __future__ import annotations

import argparse
import gc
import json
import pathlib
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.workloads import WORKLOADS, Workload
from runtime import StreamExecutionEnvironment


def _timed(run: Callable[[], list[Any]]) -> tuple[list[Any], float, float]:
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    results = run()
    return results, time.process_time() - cpu, time.perf_counter() - wall


def _job(workload: Workload, data: list[Any]) -> list[Any]:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    sink = workload.build(env, data)
    env.execute(workload.name)
    return sink.results


def _checked(workload: Workload, results: list[Any]) -> None:
    answer = workload.answer(results)
    if answer != workload.expected:
        raise SystemExit(f"{workload.name}: got {answer}, expected {workload.expected}")


def measure(workload: Workload, repeats: int) -> dict[str, Any]:
    """Plain loop and job in turn, `repeats` times after a warm-up; medians."""
    data = workload.data()
    plain: list[tuple[float, float]] = []
    ours: list[tuple[float, float]] = []
    for repeat in range(repeats + 1):
        for runs, run in (
            (plain, lambda: workload.loop(data)),
            (ours, lambda: _job(workload, data)),
        ):
            results, cpu, wall = _timed(run)
            _checked(workload, results)
            del results
            if repeat:
                runs.append((cpu, wall))
    plain_cpu, plain_wall = (statistics.median(column) for column in zip(*plain, strict=True))
    our_cpu, our_wall = (statistics.median(column) for column in zip(*ours, strict=True))
    return {
        "workload": workload.name,
        "title": workload.title,
        "records": len(data),
        "plain_cpu_s": plain_cpu,
        "plain_wall_s": plain_wall,
        "cpu_s": our_cpu,
        "wall_s": our_wall,
        "ratio_cpu": plain_cpu / our_cpu,
        "ratio_wall": plain_wall / our_wall,
        "ratios": [round(p[0] / o[0], 3) for p, o in zip(plain, ours, strict=True)],
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> int:
    """Prints a table; with `--json` writes the figures too."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="workload", help=", ".join(WORKLOADS))
    parser.add_argument("--repeats", type=int, default=5, help="measured runs of each (default 5)")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures to this file")
    options = parser.parse_args()
    if unknown := set(options.workloads) - WORKLOADS.keys():
        parser.error(f"unknown workload {', '.join(unknown)}; there are {', '.join(WORKLOADS)}")
    print(
        f"{'workload':14} {'ratio':>6} {'ns a record':>12} {'plain loop':>11}   CPU time, medians"
    )
    figures = []
    for name in options.workloads or WORKLOADS:
        figure = measure(WORKLOADS[name], options.repeats)
        figures.append(figure)
        per_record = 1e9 / figure["records"]
        print(
            f"{name:14} {figure['ratio_cpu']:6.2f} {figure['cpu_s'] * per_record:12.0f}"
            f" {figure['plain_cpu_s'] * per_record:11.0f}   {figure['title']}",
            flush=True,
        )
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
