//! Prints the table of 2009 beside what the simulated disk gives: `count(*)` over 9.3 GB on two mirrored
//! disks with the readahead strategies 0 to 3, and as this project reads.
//!
//! `cargo run --release -p pagemill-sim --example seq_scan_readahead`

use pagemill_sim::seq_scan_2009::{OURS, Run, STRATEGIES, TABLE_BLOCKS, mirror, scan};
use pagemill_sim::{Balance, DriveCount, KernelSettings, VolumeModel};

fn main() -> Result<(), pagemill_io::Error> {
    let kernel = KernelSettings::linux_2_6_30();
    println!("two mirrored disks, md of Linux 2.6.30, ext3");
    print_runs(mirror(), kernel, STRATEGIES.iter().chain(&OURS))?;
    println!("\nthe same on a file system of extents");
    let extents = KernelSettings { block_maps: false, ..kernel };
    print_runs(mirror(), extents, STRATEGIES.iter().chain(&OURS))?;
    println!("\nthe same, mirrored by btrfs, which chooses the disk by the thread");
    if let VolumeModel::Mirror { drive, count, .. } = mirror() {
        let by_thread = VolumeModel::Mirror { drive, count, balance: Balance::ByThread };
        print_runs(by_thread, extents, STRATEGIES.iter().take(1).chain(&OURS))?;
        println!("\nthe same with md and a kernel of the sixth series");
        let modern = VolumeModel::Mirror { drive, count, balance: Balance::Linux5 };
        print_runs(modern, KernelSettings::linux_6(), STRATEGIES.iter().chain(&OURS))?;
    }
    Ok(())
}

fn print_runs<'a>(
    volume: VolumeModel,
    kernel: KernelSettings,
    runs: impl Iterator<Item = &'a Run>,
) -> Result<(), pagemill_io::Error> {
    println!("{:<24}{:>10}{:>10}{:>8}   each disk", "", "measured", "model", "");
    for run in runs {
        let begin = std::time::Instant::now();
        let outcome = scan(volume, kernel, TABLE_BLOCKS, run)?;
        let measured = run.measured.map_or(String::new(), |seconds| format!("{seconds:.1} s"));
        let off = run.measured.map_or(String::new(), |seconds| {
            format!("{:+.0} %", (outcome.seconds / seconds - 1.0) * 100.0)
        });
        let disks: Vec<_> =
            outcome.drives.iter().map(|drive| describe(drive, outcome.seconds)).collect();
        println!(
            "{:<24}{:>10}{:>8.1} s{:>8}   {}",
            run.name,
            measured,
            outcome.seconds,
            off,
            disks.join(", ")
        );
        eprintln!("    ({:.1} s to compute)", begin.elapsed().as_secs_f64());
    }
    Ok(())
}

fn describe(drive: &DriveCount, seconds: f64) -> String {
    format!(
        "{:.0} tps {:.1} MB/s {:.0} % busy",
        drive.requests as f64 / seconds,
        drive.bytes as f64 / seconds / 1e6,
        drive.busy as f64 / seconds / 1e7
    )
}
