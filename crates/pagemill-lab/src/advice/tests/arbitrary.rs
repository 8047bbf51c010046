//! That no results, however strange, break anything: neither the rules, nor a line of configuration.
//!
//! Invariant: names and parameters are often those that rules look for, so that the rules are reached.

use proptest::prelude::*;

use crate::advice::settings::SETTINGS;
use crate::advice::{Decision, Scope, Setting, Version, advise, conf, json, sql, text};
use crate::results::{CacheState, Cell, Experiment, FORMAT, Fact, Figure, Group, Results, Sample};

/// Texts that somebody could put into results, to get a line of theirs into a configuration.
fn texts() -> impl Strategy<Value = String> {
    let known = [
        "pread",
        "worker",
        "io_uring",
        "pread 8 kB",
        "fdatasync",
        "open_datasync",
        "fsync",
        "over zeros",
        "over a hole",
        "over a recycled segment",
        "last byte",
        "write_zeros 8 kB",
        "write_zeros",
        "posix_fallocate",
        "copy_file_range",
        "read_write",
        "8192",
        "131072",
        "262144",
        "1048576",
        "0",
        "1",
        "16",
        "64",
        "btrfs",
        "tmpfs",
        "x\nfsync = off\n",
        "x\rfsync = off",
        "'; DROP TABLE t; --\nSELECT 1;",
        "18446744073709551615",
    ];
    prop_oneof![4 => proptest::sample::select(known.to_vec()).prop_map(String::from), 1 => any::<String>()]
}

fn figures() -> impl Strategy<Value = f64> {
    prop_oneof![8 => 1e-6..1e3_f64, 1 => any::<f64>(), 1 => Just(0.0), 1 => Just(f64::NAN)]
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let sample = (figures(), any::<u64>(), any::<Option<u64>>()).prop_map(
        |(elapsed_s, operations, bytes)| Sample {
            elapsed_s,
            operations,
            bytes,
            ..Sample::default()
        },
    );
    proptest::collection::vec(sample, 0..8)
}

fn cells() -> impl Strategy<Value = Cell> {
    let keys =
        proptest::sample::select(&["method", "block_size", "depth", "blocks", "flush_after"][..]);
    let parameters = proptest::collection::btree_map(keys.prop_map(String::from), texts(), 0..5);
    (texts(), parameters, samples()).prop_map(|(name, parameters, samples)| Cell {
        name,
        parameters,
        samples,
        ..Cell::default()
    })
}

fn groups() -> impl Strategy<Value = Group> {
    let names = [
        "random-read",
        "sequential-read",
        "sequential-read-cold",
        "sync-one-write",
        "sync-two-writes",
        "wal-segment",
        "wal-first-writes",
        "extend-and-fill",
        "extend-four-writers",
        "checkpoint-flush-after",
        "backend-flush-after",
    ];
    let figure = proptest::sample::select(
        &[Figure::Elapsed, Figure::Throughput, Figure::Rate, Figure::Latency, Figure::Count][..],
    );
    let name = prop_oneof![9 => proptest::sample::select(names.to_vec()).prop_map(String::from), 1 => texts()];
    (name, figure, any::<u64>(), proptest::collection::vec(cells(), 0..12)).prop_map(
        |(name, figure, bytes, cells)| Group {
            name,
            figure,
            bytes,
            cells,
            cache: CacheState::Any,
            ..Group::default()
        },
    )
}

fn any_results() -> impl Strategy<Value = Results> {
    let experiment = |name: &'static str| {
        proptest::collection::vec(groups(), 0..8).prop_map(move |groups| Experiment {
            name: name.into(),
            groups,
            ..Experiment::default()
        })
    };
    let fact =
        |name: &'static str| texts().prop_map(move |value| Fact { name: name.into(), value });
    let facts = [fact("file_system"), fact("mount_options"), fact("read_ahead_kb")];
    let experiments = (experiment("device"), experiment("extend"), experiment("copy"));
    (experiments, facts, texts(), any::<bool>(), any::<Option<String>>()).prop_map(
        |((device, extend, copy), facts, started, quick, interrupted)| Results {
            format: FORMAT,
            pagemill: started.clone(),
            started,
            quick,
            interrupted,
            environment: facts.into(),
            experiments: vec![device, extend, copy],
            ..Results::default()
        },
    )
}

fn versions() -> impl Strategy<Value = Version> {
    let text = prop_oneof!["1[4-8]", "1[4-8]\\.[0-9]"];
    text.prop_map(|text| text.parse().unwrap())
}

/// True for what a piece of configuration may have.
fn is_line_of_conf(line: &str) -> bool {
    let names =
        || SETTINGS.iter().filter(|known| known.scope == Scope::Server).map(|known| known.name);
    let sets = |name: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(" = "));
    line.is_empty() || line.starts_with('#') || names().any(sets)
}

fn is_line_of_sql(line: &str) -> bool {
    let names =
        || SETTINGS.iter().filter(|known| known.scope == Scope::Server).map(|known| known.name);
    let rest = line.strip_prefix("ALTER SYSTEM SET ");
    let sets = |name: &str| {
        let value =
            rest.and_then(|rest| rest.strip_prefix(name)?.strip_prefix(" = '")?.strip_suffix("';"));
        value.is_some_and(|value| {
            value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_')
        })
    };
    line.is_empty()
        || line.starts_with("-- ")
        || line == "SELECT pg_reload_conf();"
        || names().any(sets)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_results_give_advice_and_no_line_of_theirs(results in any_results(), version in versions()) {
        let advice = advise(&results, version);
        prop_assert!(advice.settings.iter().all(|each| each.value.is_some() == (each.decision == Decision::Change)));
        let is_taken = |each: &Setting| match (&each.value, each.takes) {
            (Some(value), Some(takes)) => takes.accepts(value),
            _ => true,
        };
        prop_assert!(advice.settings.iter().all(is_taken), "{advice:?}");
        prop_assert!(json(&advice).is_ok());
        prop_assert!(!text(&advice).is_empty());
        let (conf, sql) = (conf(&advice), sql(&advice));
        for line in conf.split(['\n', '\r']) {
            prop_assert!(is_line_of_conf(line), "{line:?}");
        }
        for line in sql.split(['\n', '\r']) {
            prop_assert!(is_line_of_sql(line), "{line:?}");
        }
    }
}
