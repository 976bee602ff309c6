"""The parts of perf/compare.py: the library beside the other libraries ("peers") on one card."""
