//! Real output of perf.
