//! What a run of the lab found: the one model between those who measure and those who tell.
//!
//! Written and read as JSON. Invariants: times are seconds, sizes bytes; samples of the cells of one group stand in the
//! order of the turns, so that the n-th samples of two cells were taken next to each other and make a pair; a cell that
//! could not be measured has no samples and says why; nothing here names the machine, its owner or its directories.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::statistics::{Comparison, Summary, compare, summary};

/// The version of this format; a reader refuses others.
pub const FORMAT: u32 = 1;

/// One run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`FORMAT`] when it was written.
    pub format: u32,
    /// The version of pagemill that ran it.
    pub pagemill: String,
    /// When it began: RFC 3339, in UTC.
    pub started: String,
    /// How long all of it took, in seconds.
    pub elapsed_s: f64,
    /// True for a short run with small files, whose figures are rough.
    pub quick: bool,
    /// The run ended early, and why.
    pub interrupted: Option<String>,
    /// What it ran on, in the order in which it is told: kernel, file system, mount options, device and so on.
    pub environment: Vec<Fact>,
    /// What disturbed the figures or the reader should know, each with its remedy.
    pub warnings: Vec<Warning>,
    /// The experiments, in the order they ran.
    pub experiments: Vec<Experiment>,
    /// What holds of what was claimed on PostgreSQL's mailing lists.
    pub verdicts: Vec<Verdict>,
}

/// Something known about the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Stable, in snake_case: `kernel`, `file_system`, `read_ahead_kb`.
    pub name: String,
    /// As a person reads it.
    pub value: String,
}

/// A doubt about figures, and what helps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// What kind of doubt.
    pub kind: WarningKind,
    /// The group it concerns, as `experiment/group`; `None` for the whole run.
    pub group: Option<String>,
    /// What was seen, with its figures.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// Kinds of doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// The first turns were much slower or faster than the later ones.
    Warmup,
    /// Single turns were far from the others.
    Outliers,
    /// Figures went up or down over the run.
    Drift,
    /// Others used the processors or the device meanwhile.
    BusyMachine,
    /// The page cache was not in the state that was asked for.
    CacheState,
    /// The processor's speed changes, or is not known to be steady.
    ProcessorSpeed,
    /// The directory lies on a network or memory file system.
    FileSystem,
    /// The device, or who rations it, lets no more through.
    Limited,
    /// A limit of the sandbox or of privileges kept something from being measured.
    Privileges,
    /// Too few turns for the confidence that is wanted.
    FewSamples,
}

/// One of the arguments, run again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// As on the command line: `pread`, `readahead`, `mmap`, `readiness`, `copy`, `extend`, `device`,
    /// `postgres`.
    pub name: String,
    /// One line: what it is about.
    pub title: String,
    /// The question it answers, in a sentence or two.
    pub question: String,
    /// What is compared, in groups whose cells can be held against each other.
    pub groups: Vec<Group>,
    /// Parts that were left out as a whole, and why.
    pub skipped: Vec<Skipped>,
    /// How long it took, in seconds.
    pub elapsed_s: f64,
}

/// A part that was not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// What it is.
    pub what: String,
    /// Why it was not run, and what would allow it.
    pub why: String,
}

/// Contestants that did the same work in turns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Stable within the experiment, in kebab-case: `sequential-cached`.
    pub name: String,
    /// For people: "count of bigtable, cached".
    pub title: String,
    /// The work, in numbers: bytes it reads or writes, 0 where that means nothing.
    pub bytes: u64,
    /// The state of the page cache it began in.
    pub cache: CacheState,
    /// What the figure of a cell is.
    pub figure: Figure,
    /// The cell that others are held against by default, by name.
    pub baseline: Option<String>,
    /// The contestants, in the order in which they took turns first.
    pub cells: Vec<Cell>,
    /// How many rounds each pass of the run had, in their order: passes lie minutes apart. Empty where nobody kept it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<u32>,
}

/// The state of the page cache before each turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// It plays no part, or is part of what is measured.
    #[default]
    Any,
    /// All of the files are in it.
    Cached,
    /// None of the files is in it.
    Cold,
    /// Memory is smaller than the files.
    Limited,
}

/// What is told of a cell, out of its samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Seconds; less is better.
    #[default]
    Elapsed,
    /// Bytes of the work over seconds; more is better.
    Throughput,
    /// Operations over seconds; more is better.
    Rate,
    /// Seconds of one operation; less is better.
    Latency,
    /// A count, such as extents; less is better.
    Count,
}

/// One contestant of a group.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Stable within the group: `pread`, `io_uring depth 16`.
    pub name: String,
    /// What it is made of, for charts and advice: `method`, `block_size`, `depth`, `strategy`, `blocks`, `writers`.
    pub parameters: BTreeMap<String, String>,
    /// Its turns.
    pub samples: Vec<Sample>,
    /// Why there are none.
    pub absent: Option<Absence>,
    /// Short remarks: what `auto` chose, extents that are shared.
    pub note: Option<String>,
    /// Where the processor's time went, as folded stacks: `main;scan;pread 812`, a stack and its weight per line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// Why a cell has no samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "why")]
pub enum Absence {
    /// The kernel, the file system or the sandbox refuses it.
    Refused(String),
    /// It needs something this run does not have.
    Skipped(String),
    /// It failed.
    Failed(String),
}

/// One turn of one contestant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Elapsed time in seconds.
    pub elapsed_s: f64,
    /// Processor time in user mode, in seconds.
    pub user_s: f64,
    /// Processor time in the kernel, in seconds.
    pub system_s: f64,
    /// Time spent waiting for I/O, in seconds, where it was counted.
    pub wait_s: Option<f64>,
    /// Bytes that the device moved meanwhile, where that was seen.
    pub device_bytes: Option<u64>,
    /// Operations done, for rates and latencies.
    pub operations: u64,
    /// Bytes of the work in this turn, where turns last a time and differ; `None` for those of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Seconds of its parts, by name: `extend`, `fdatasync`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, f64>,
    /// A figure that is counted, not timed: extents.
    pub counted: Option<f64>,
    /// Seconds of one operation, where that is not the elapsed time over the operations: where long ones count by their
    /// length, or others were timed than the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_s: Option<f64>,
    /// Calls by name: `pread`, `lseek`, `fdatasync`, `io_uring_enter`.
    pub calls: BTreeMap<String, u64>,
    /// Device, processor and so on over the turn, where they were followed: for the time lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Moment>,
}

/// One point of a time line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Seconds since the turn began.
    pub at_s: f64,
    /// Bytes per second that the device read since the point before.
    pub read_rate: f64,
    /// Bytes per second that it wrote.
    pub write_rate: f64,
    /// Share of one processor in user mode, 0 and up.
    pub user: f64,
    /// Share of one processor in the kernel.
    pub system: f64,
}

/// What a message claimed, and what was seen here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Stable, in kebab-case: `pread-within-noise`; of a verdict on a model `-model` is added.
    pub id: String,
    /// The message: its subject in quotes, the mailing list, and its year.
    pub document: String,
    /// The message in the public archive of the lists, where its address is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The model that was measured instead of this storage: "two disks of 2009".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it claims, in our words and with its figures.
    pub claim: String,
    /// What was measured here, with interval and cache state; empty when nothing was.
    pub measured: String,
    /// Whether it holds.
    pub outcome: ClaimStatus,
    /// Where it does not hold as it is, in which direction it differs; empty where that means nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub differs: String,
    /// Why it does not, or what stands in the way of saying.
    pub why: String,
    /// The groups it rests on, as `experiment/group`.
    pub evidence: Vec<String>,
}

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimStatus {
    /// It holds here.
    Holds,
    /// Some of it holds.
    HoldsInPart,
    /// It does not hold here.
    DoesNotHold,
    /// The figures cannot tell.
    NotSeen,
    /// Its cells were not measured.
    #[default]
    NotMeasured,
}

impl Results {
    /// An experiment by name.
    pub fn experiment(&self, name: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|experiment| experiment.name == name)
    }

    /// A group by the names of its experiment and its own.
    pub fn group(&self, experiment: &str, group: &str) -> Option<&Group> {
        self.experiment(experiment)?.groups.iter().find(|each| each.name == group)
    }
}

impl Group {
    /// A cell by name.
    pub fn cell(&self, name: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.name == name)
    }

    /// The figures of a cell, in the order of its turns.
    pub fn figures(&self, cell: &Cell) -> Vec<f64> {
        cell.samples.iter().map(|sample| self.figure.of(sample, self.bytes)).collect()
    }

    /// How many times as good a cell is as another, turn by turn, with the group's noise floor in the interval.
    pub fn compare(&self, first: &Cell, other: &Cell) -> Option<Comparison> {
        let more_is_better = self.figure.more_is_better();
        compare(&self.figures(first), &self.figures(other), more_is_better, self.floor_within())
    }

    /// The measured cell with the best median, and its figure.
    pub fn leader(&self) -> Option<(&Cell, Summary)> {
        let measured = self.cells.iter().filter_map(|cell| Some((cell, self.summary(cell)?)));
        let sign = if self.figure.more_is_better() { -1.0 } else { 1.0 };
        measured.min_by(|(_, a), (_, b)| (sign * a.median).total_cmp(&(sign * b.median)))
    }

    /// Median and interval of a cell's figure; `None` when it has no samples.
    pub fn summary(&self, cell: &Cell) -> Option<Summary> {
        summary(&self.figures(cell))
    }
}

impl Figure {
    /// True when the larger figure is the better one.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::Throughput | Self::Rate)
    }

    /// The figure of a sample, given the bytes of its group's work.
    pub fn of(self, sample: &Sample, bytes: u64) -> f64 {
        let operations = sample.operations.max(1) as f64;
        match self {
            Self::Elapsed => sample.elapsed_s,
            Self::Throughput => sample.bytes.unwrap_or(bytes) as f64 / sample.elapsed_s,
            Self::Rate => operations / sample.elapsed_s,
            Self::Latency => sample.latency_s.unwrap_or(sample.elapsed_s / operations),
            Self::Count => sample.counted.unwrap_or_default(),
        }
    }
}
