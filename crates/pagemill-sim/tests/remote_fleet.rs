//! The model of workers on an object store.
//!
//! Nothing is faster than what it is made of, real runs took as long, and the guide has what it says now.

use std::time::Duration;

use pagemill_sim::remote_fleet::{Fleet, HeldBackBy, StoreSheet, Work, WorkerSheet, tables};
use proptest::prelude::*;

const REQUEST: u64 = 8 << 20;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_is_faster_than_any_part_allows(
        bytes in 1_u64..2_000_000_000, workers in 1_u32..40, cores in 1_u32..8,
        link in 10_000_000_u64..2_000_000_000, receive_rate in 100_000_000_u64..2_000_000_000,
        requests_a_second in 10_u64..10_000, seed: u64,
    ) {
        let store = StoreSheet { requests_a_second, ..StoreSheet::s3_standard() };
        let worker = WorkerSheet { cores, link, receive_rate };
        let fleet = Fleet { store, worker, workers, seed };
        let work = Work::count(bytes);
        let told = fleet.forecast(&work);
        prop_assert_eq!(told, fleet.forecast(&work));
        let seconds = told.time.as_secs_f64();
        let all = f64::from(workers);
        prop_assert!(seconds >= bytes as f64 / (link as f64 * all) * 0.999);
        prop_assert!(seconds >= bytes as f64 / (receive_rate as f64 * f64::from(cores) * all) * 0.999);
        prop_assert!(seconds >= told.requests as f64 * 0.8 / requests_a_second as f64);
        let least = bytes.div_ceil(REQUEST) + u64::from(workers) * 36;
        prop_assert!((least..=least + u64::from(workers)).contains(&told.requests), "{told:?}");
    }
}

#[test]
fn what_holds_a_scan_back_is_named() {
    let fleet = |store, worker, workers| Fleet { store, worker, workers, seed: 1 };
    let held = |fleet: Fleet| fleet.forecast(&Work::count(100_000_000_000)).held_back_by;
    let (store, worker) = (StoreSheet::s3_standard(), tables::WORKER);
    assert_eq!(
        held(fleet(store, WorkerSheet { link: 100_000_000, ..worker }, 1)),
        HeldBackBy::Links
    );
    let slow = WorkerSheet { receive_rate: 50_000_000, ..worker };
    assert_eq!(held(fleet(store, slow, 1)), HeldBackBy::Cores);
    let few = StoreSheet { requests_a_second: 50, ..store };
    assert_eq!(held(fleet(few, worker, 4)), HeldBackBy::RequestRate);
    let limited = StoreSheet { total_rate: Some(500_000_000), ..store };
    assert_eq!(held(fleet(limited, worker, 4)), HeldBackBy::StoreRate);
    let far = StoreSheet {
        first_byte: Duration::from_secs(5),
        slow_first_byte: Duration::from_secs(5),
        ..store
    };
    assert_eq!(held(fleet(far, worker, 1)), HeldBackBy::RoundTrips);
}

/// The scan of `cargo xtask bench remote`: 686.4 MB, 30 ms before each answer, 100 MB/s of all answers together, two cores.
#[test]
fn a_real_run_took_as_long_as_the_model_says() {
    const MEASURED: f64 = 7.644;
    let worker = WorkerSheet { cores: 2, link: u64::MAX, receive_rate: 800_000_000 };
    let store = StoreSheet::test_bucket(Duration::from_millis(30), 100_000_000);
    let told = Fleet { store, worker, workers: 1, seed: 1 }.forecast(&Work::export(686_400_000));
    let off = told.time.as_secs_f64() / MEASURED - 1.0;
    assert!(off.abs() < 0.2, "{told:?}, {MEASURED} s");
}

/// Of the guide's table, those lines that are soon computed.
#[test]
fn the_guide_has_the_table() {
    let page = include_str!("../../../docs/guide/src/at_scale.md");
    let lines = [
        tables::line(&Work::count(tables::DATABASE), StoreSheet::s3_standard(), 64),
        tables::line(&Work::lookup(), StoreSheet::s3_standard(), 1),
        tables::line(&Work::lookup(), StoreSheet::s3_express(), 1),
    ];
    for line in lines {
        assert!(page.contains(&line), "{line}");
    }
}
