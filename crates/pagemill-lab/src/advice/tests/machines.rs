//! Made-up machines for the tests of the advice: figures as such devices give them, by a few laws.
//!
//! ```text
//! random reads      depth / latency, up to the device's limit
//! reads in order    bytes in flight / latency, up to the bandwidth, and the limit
//! ```
//!
//! Invariant: a machine gives the same results each time, noise included.

use std::collections::BTreeMap;

use crate::results::{
    CacheState, Cell, Experiment, FORMAT, Fact, Figure, Group, Results, Sample, Warning,
    WarningKind,
};

/// A storage as the laws know it.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    /// Seconds of a read by itself.
    pub(super) latency: f64,
    /// Operations per second at most.
    pub(super) limit: f64,
    /// Bytes per second at most.
    pub(super) bandwidth: f64,
    pub(super) file_system: &'static str,
    pub(super) mount_options: &'static str,
    pub(super) read_ahead_kb: u64,
    /// Half the width of the noise, as a share.
    pub(super) noise: f64,
    /// How many times as fast the ring reads in order as threads do.
    pub(super) ring: f64,
    /// Turns of each cell, the first half of them in the first pass.
    pub(super) turns: u64,
    /// It is a quick run, with the cells of such.
    pub(super) quick: bool,
    /// What the noise depends on.
    pub(super) seed: u64,
    /// Operations per second: open_datasync, fdatasync, fsync, open_sync, through the page cache but for fdatasync and fsync.
    pub(super) syncs: [f64; 4],
    /// Seconds for a segment: written zeros, last byte.
    pub(super) segments: [f64; 2],
    /// Commits per second: over zeros, over a hole, over a recycled segment.
    pub(super) commits: [f64; 3],
    /// Seconds to grow and fill: written zeros, posix_fallocate.
    pub(super) growth: [f64; 2],
    /// Seconds of a transaction beside a checkpoint and a session: flushed never, every 256 kB, every 1 MB.
    pub(super) beside: [[f64; 3]; 2],
}

/// A drive of today in the machine.
pub(super) fn nvme() -> Machine {
    Machine {
        latency: 80e-6,
        limit: 600_000.0,
        bandwidth: 3.2e9,
        file_system: "ext4",
        mount_options: "rw,relatime",
        read_ahead_kb: 128,
        noise: 0.02,
        ring: 1.0,
        turns: 11,
        quick: false,
        seed: 7,
        syncs: [21_000.0, 20_500.0, 20_000.0, 20_400.0],
        segments: [0.012, 0.002],
        commits: [20_000.0, 9_000.0, 20_100.0],
        growth: [0.10, 0.08],
        beside: [[0.002; 3]; 2],
    }
}

/// A disk that is let do 2,000 operations a second, however many wait.
pub(super) fn slow() -> Machine {
    Machine {
        latency: 100e-6,
        limit: 2_000.0,
        bandwidth: 200e6,
        syncs: [400.0, 400.0, 300.0, 300.0],
        segments: [0.2, 0.05],
        commits: [400.0, 200.0, 400.0],
        ..nvme()
    }
}

/// A volume behind a network: a millisecond away, and 16,000 operations a second.
pub(super) fn cloud() -> Machine {
    Machine { latency: 1e-3, limit: 16_000.0, bandwidth: 250e6, ..slow() }
}

/// A file system that copies on write, on the drive.
pub(super) fn copy_on_write() -> Machine {
    Machine {
        file_system: "btrfs",
        segments: [0.050, 0.002],
        commits: [5_000.0, 5_050.0, 4_000.0],
        ..nvme()
    }
}

impl Machine {
    /// What a full run finds on it.
    pub(super) fn results(&self) -> Results {
        let fact = |name: &str, value: String| Fact { name: name.into(), value };
        Results {
            format: FORMAT,
            pagemill: "0.1.0".into(),
            started: "2026-01-02T03:04:05Z".into(),
            quick: self.quick,
            environment: vec![
                fact("file_system", self.file_system.into()),
                fact("mount_options", self.mount_options.into()),
                fact("read_ahead_kb", self.read_ahead_kb.to_string()),
            ],
            experiments: vec![
                Experiment {
                    name: "device".into(),
                    groups: self.device(),
                    ..Experiment::default()
                },
                Experiment {
                    name: "extend".into(),
                    groups: self.extend(),
                    ..Experiment::default()
                },
            ],
            ..Results::default()
        }
    }

    fn device(&self) -> Vec<Group> {
        let depths = [1, 2, 4, 8, 16, 32, 64];
        let block = 8 << 10;
        let mut random = vec![self.rate("pread", block, 1)];
        random.extend([4, 8, 16, 32].map(|workers| {
            let mut cell = self.rate("worker", block, workers);
            cell.parameters.insert("workers".into(), workers.to_string());
            cell
        }));
        random.extend(depths.map(|depth| self.rate("io_uring", block, depth)));
        let sizes = [8_u64, 16, 32, 64, 128, 256, 512, 1024].map(|kilobytes| kilobytes << 10);
        let mut sequential: Vec<Cell> =
            sizes.map(|size| self.stream("pread", size, 1, size)).into();
        sequential
            .extend([2, 4, 16].map(|depth| self.stream("io_uring", 1 << 20, depth, depth << 20)));
        sequential.push(self.stream("worker", 1 << 20, 4, 4 << 20));
        let ahead = self.read_ahead_kb << 10;
        let mut cold: Vec<Cell> = [8_u64 << 10, 128 << 10, 1 << 20]
            .map(|size| self.stream("pread", size, 1, ahead))
            .into();
        // Threads have one read in flight each, however deep their queue is.
        cold.push(self.stream("worker", 128 << 10, 16, 512 << 10));
        cold.push(self.stream("io_uring", 128 << 10, 16, 2 << 20));
        vec![
            group("random-read", Figure::Rate, self.of_run(random, &QUICK_RANDOM)),
            group("sequential-read", Figure::Throughput, self.of_run(sequential, &QUICK_IN_ORDER)),
            Group {
                cache: CacheState::Cold,
                ..group("sequential-read-cold", Figure::Throughput, cold)
            },
            group("sync-one-write", Figure::Rate, self.sync_cells(1.0)),
            group("sync-two-writes", Figure::Rate, self.sync_cells(0.8)),
            group("checkpoint-flush-after", Figure::Latency, self.beside(0)),
            group("backend-flush-after", Figure::Latency, self.beside(1)),
        ]
    }

    /// The cells that such a run has.
    fn of_run(&self, cells: Vec<Cell>, quick: &[&str]) -> Vec<Cell> {
        let has = |cell: &Cell| !self.quick || quick.contains(&&*cell.name);
        cells.into_iter().filter(has).collect()
    }

    fn beside(&self, writer: usize) -> Vec<Cell> {
        let cell = |(kilobytes, seconds): (u64, f64)| {
            let parameters = [
                ("method", "sync_file_range".into()),
                ("flush_after", (kilobytes << 10).to_string()),
            ];
            let mut cell = self.cell(&format!("every {kilobytes} kB"), &parameters, 1.0, 8192.0);
            cell.samples.iter_mut().for_each(|sample| {
                sample.latency_s = Some(sample.elapsed_s * seconds);
            });
            cell
        };
        [0, 256, 1024].into_iter().zip(self.beside[writer]).map(cell).collect()
    }

    fn extend(&self) -> Vec<Group> {
        let named =
            |name: &str, rate: f64| self.cell(name, &[("method", name.into())], rate, 8192.0);
        let [zeros, last_byte] = self.segments;
        let [over_zeros, over_a_hole, recycled] = self.commits;
        let growth = |writers: &str| {
            let cell = |(method, seconds): (&str, f64)| {
                let parameters = [
                    ("method", method.into()),
                    ("blocks", "64".into()),
                    ("writers", writers.into()),
                ];
                self.cell(&format!("{method} 64"), &parameters, 1.0 / seconds, 8192.0)
            };
            let [zeros, fallocate] = self.growth;
            [("write_zeros", zeros), ("posix_fallocate", fallocate)].map(cell).into()
        };
        vec![
            group("extend-and-fill", Figure::Elapsed, growth("1")),
            group("extend-four-writers", Figure::Elapsed, growth("4")),
            group(
                "wal-segment",
                Figure::Elapsed,
                vec![named("write_zeros 8 kB", 1.0 / zeros), named("last byte", 1.0 / last_byte)],
            ),
            group(
                "wal-first-writes",
                Figure::Rate,
                vec![
                    named("over zeros", over_zeros),
                    named("over a hole", over_a_hole),
                    named("over a recycled segment", recycled),
                ],
            ),
        ]
    }

    fn sync_cells(&self, share: f64) -> Vec<Cell> {
        let names = ["open_datasync buffered", "fdatasync", "fsync", "open_sync buffered"];
        let cell = |(name, rate): (&str, f64)| {
            self.cell(
                name,
                &[("method", name.into()), ("block_size", "8192".into())],
                rate * share,
                8192.0,
            )
        };
        names.into_iter().zip(self.syncs).map(cell).collect()
    }

    /// Random reads with so many in flight.
    fn rate(&self, method: &str, block: u64, depth: u64) -> Cell {
        let rate = (depth as f64 / self.latency).min(self.limit);
        self.cell(
            &name(method, block, depth),
            &parameters(method, block, depth),
            rate,
            block as f64,
        )
    }

    /// Reads in order with so many bytes in flight.
    fn stream(&self, method: &str, block: u64, depth: u64, in_flight: u64) -> Cell {
        let in_flight = in_flight as f64;
        let request = in_flight.min((128 << 10) as f64).max(block as f64);
        let bytes = (in_flight / self.latency).min(self.bandwidth).min(self.limit * request);
        let bytes = if method == "io_uring" { bytes * self.ring } else { bytes };
        let block_bytes = block as f64;
        self.cell(
            &name(method, block, depth),
            &parameters(method, block, depth),
            bytes / block_bytes,
            block_bytes,
        )
    }

    /// Turns of one operation of so many bytes each, of which so many are done in a second.
    fn cell(&self, name: &str, parameters: &[(&str, String)], rate: f64, bytes: f64) -> Cell {
        let seed = name
            .bytes()
            .fold(self.seed, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        let sample = |turn: u64| {
            let noise = self.noise * (2.0 * share(seed.wrapping_add(turn)) - 1.0);
            Sample {
                elapsed_s: (1.0 + noise) / rate,
                operations: 1,
                bytes: Some(bytes as u64),
                ..Sample::default()
            }
        };
        let parameters: BTreeMap<String, String> =
            parameters.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        Cell {
            name: name.into(),
            parameters,
            samples: (0..self.turns).map(sample).collect(),
            ..Cell::default()
        }
    }
}

/// The cells of a quick run.
const QUICK_RANDOM: [&str; 6] = [
    "pread 8 kB",
    "worker 8 kB depth 4",
    "worker 8 kB depth 16",
    "io_uring 8 kB depth 4",
    "io_uring 8 kB depth 16",
    "io_uring 8 kB depth 64",
];
const QUICK_IN_ORDER: [&str; 4] =
    ["pread 128 kB", "pread 256 kB", "pread 1 MB", "io_uring 1 MB depth 4"];

/// A number from 0 to 1 that depends on another in no way that can be seen (the finish of splitmix64).
fn share(number: u64) -> f64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 40) as f64 / f64::from(1 << 24)
}

/// The same results, doubtful: somebody else used the machine during that group.
pub(super) fn disturbed(mut results: Results, groups: &[&str]) -> Results {
    let warning = |group: &&str| Warning {
        kind: WarningKind::BusyMachine,
        group: Some((*group).into()),
        message: "others used 90 % of a processor".into(),
        remedy: "stop them".into(),
    };
    results.warnings.extend(groups.iter().map(warning));
    results
}

fn group(name: &str, figure: Figure, cells: Vec<Cell>) -> Group {
    Group { name: name.into(), figure, cells, ..Group::default() }
}

fn parameters(method: &str, block: u64, depth: u64) -> [(&'static str, String); 3] {
    [("method", method.into()), ("block_size", block.to_string()), ("depth", depth.to_string())]
}

fn name(method: &str, block: u64, depth: u64) -> String {
    let kilobytes = block >> 10;
    let size = if kilobytes >= 1024 { "1 MB".into() } else { format!("{kilobytes} kB") };
    if depth == 1 { format!("{method} {size}") } else { format!("{method} {size} depth {depth}") }
}
