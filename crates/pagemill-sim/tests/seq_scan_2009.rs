//! The table of 2009 (see `seq_scan_2009.rs`): the model comes from data sheets and kernel defaults
//! alone, and gives times near those that were measured.

use pagemill_sim::KernelSettings;
use pagemill_sim::seq_scan_2009::{AUTO, Run, STRATEGIES, TABLE_BLOCKS, WINDOW, mirror, scan};

fn seconds(kernel: KernelSettings, run: &Run) -> f64 {
    scan(mirror(), kernel, TABLE_BLOCKS, run).unwrap().seconds
}

#[test]
fn the_strategies_of_2009_take_the_times_that_were_measured() {
    let kernel = KernelSettings::linux_2_6_30();
    let model = STRATEGIES.map(|run| seconds(kernel, &run));
    println!("model {model:.1?}");
    for number in [0, 1, 3] {
        let measured = STRATEGIES[number].measured.unwrap();
        let off = model[number] / measured - 1.0;
        assert!(off.abs() < 0.15, "strategy {number}: {:.1} s, {measured} s", model[number]);
    }
    let gain = model[0] / model[2];
    assert!((1.4..2.0).contains(&gain), "strategy 2 is {gain:.2} times as fast");
    let window = seconds(kernel, &WINDOW);
    assert!(window <= model[2] * 1.001, "window {window:.1} s, strategy 2 {:.1} s", model[2]);
    let auto = seconds(kernel, &AUTO);
    assert!(auto <= model[2], "auto {auto:.1} s, strategy 2 {:.1} s", model[2]);
}

/// The block maps of ext3 are what holds strategy 3 back: announcing a window waits for each
/// map, behind all that was announced before it. Without them two windows are as good as one.
#[test]
fn two_windows_are_held_back_by_block_maps_alone() {
    let extents = KernelSettings { block_maps: false, ..KernelSettings::linux_2_6_30() };
    let model = [0, 2, 3].map(|number| seconds(extents, &STRATEGIES[number]));
    assert!(model[0] / model[2] > 1.5, "{model:.1?}");
}
