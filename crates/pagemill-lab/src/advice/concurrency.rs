//! How many reads at once, and by whom: `io_method`, `io_workers`, `effective_io_concurrency`,
//! `maintenance_io_concurrency`.
//!
//! They follow from the depth up to which random reads of 8 kB, past the page cache, grow, and `io_workers` from the number of
//! workers. From 18 on scans in order also read ahead by that many, so that the depth up to which reads of 1 MB in order grow
//! counts as well. Invariants: a value above the default is one that was measured; one below it stands only where no deeper
//! level was seen to be better, however little.

use crate::advice::ladder::{Ladder, Step};
use crate::advice::run_figures::{Pair, RunFigures};
use crate::advice::version::Version;
use crate::advice::{Evidence, Ruling};
use crate::limits::Limit;

const BLOCK: u64 = 8 << 10;
const LARGE: u64 = 1 << 20;

/// The most workers there may be (18).
const MOST_WORKERS: u64 = 32;
/// The default number of workers (18).
const WORKERS: u64 = 3;
/// The default is divided by no more than this.
const LARGEST_CUT: u64 = 4;

/// Rule: `io_uring` where the ring was faster than threads by the threshold with as many in flight as there are threads, here
/// and there or in order, and slower in none of the comparisons; else the default. Deeper queues are no comparison, as more
/// threads would have more in flight too; but where the ring is slower in spite of more, it is not advised.
/// `sync` is never advised: it looks ahead by advice to the kernel, which no cell here does.
pub(super) fn io_method(run_figures: &RunFigures<'_>, _version: Version) -> Ruling {
    let workers = pagemill_io::WORKERS as u64;
    let pair = |name, block, depth| {
        let place = run_figures.group(name)?;
        let cells = place.cell("io_uring", block, depth).zip(place.cell("worker", block, depth));
        Ok::<_, String>(cells.and_then(|(ring, worker)| place.pair(ring, worker)))
    };
    let random = pair("device/random-read", BLOCK, workers);
    let in_order = pair("device/sequential-read", LARGE, workers);
    let equal: Vec<Pair> = [&random, &in_order].into_iter().flatten().flatten().cloned().collect();
    if equal.is_empty() {
        let unmeasured = format!(
            "io_uring and worker were not both measured with {workers} reads in flight; a full run does"
        );
        return Ruling::not_measured(random.and(in_order).err().unwrap_or(unmeasured));
    }
    let through_the_cache = pair("device/sequential-read-cold", 128 << 10, 16).ok().flatten();
    let all = || equal.iter().chain(&through_the_cache);
    let is_better = equal.iter().any(Pair::is_faster) && !all().any(Pair::is_slower);
    let evidence: Vec<Evidence> = all().map(|pair| pair.evidence.clone()).collect();
    if !is_better {
        let why = "io_uring was not seen to be faster than worker without being slower elsewhere";
        return Ruling::keep(why).evidence(evidence);
    }
    let condition = "the server was built with liburing and may use it; for the first: \
                     select enumvals from pg_settings where name = 'io_method'";
    Ruling::set(
        "io_uring",
        format!(
            "reads through the ring were faster than by {workers} threads with as many in flight"
        ),
    )
    .evidence(evidence)
    .only_where(condition)
}

/// Rule: a worker does one read at a time, so as many as random reads by workers gain from, beginning at the default; never
/// fewer, as idle workers cost next to nothing.
pub(super) fn io_workers(run_figures: &RunFigures<'_>, _version: Version) -> Ruling {
    let ladder = match run_figures.group("device/random-read") {
        Ok(place) => Ladder::by_workers(place),
        Err(reason) => return Ruling::not_measured(reason),
    };
    let start = ladder.nearest(WORKERS);
    let Some((start, top)) = start.and_then(|start| Some((start, ladder.climb(start)?))) else {
        return Ruling::not_measured("reads by several numbers of workers were not measured");
    };
    let last = ladder.from(u64::MAX);
    let beyond = last.and_then(|last| ladder.evidence(&last, &top));
    let Some(gain) = ladder.evidence(&top, &start).filter(|_| top.value > start.value) else {
        let why =
            format!("random reads by more than {} workers were not clearly faster", start.value);
        return Ruling::keep(why).evidence(beyond);
    };
    let value = top.value.min(MOST_WORKERS);
    let why =
        format!("a worker has one read in flight, and random reads grow up to {value} workers");
    Ruling::set(value.to_string(), why)
        .evidence([gain])
        .evidence(beyond)
        .caution("it has an effect with io_method = worker only; each worker is a process")
}

pub(super) fn effective_io_concurrency(run_figures: &RunFigures<'_>, version: Version) -> Ruling {
    let default = if version.major() >= 18 { 16 } else { 1 };
    let ruling = concurrency(run_figures, version, default);
    if version.major() >= 18 || ruling.value.is_none() {
        return ruling;
    }
    ruling.caution("before PostgreSQL 18 bitmap heap scans use it, and hardly anything else")
}

pub(super) fn maintenance_io_concurrency(run_figures: &RunFigures<'_>, version: Version) -> Ruling {
    concurrency(run_figures, version, if version.major() >= 18 { 16 } else { 10 })
}

/// A ladder, the step of the default, and how far up from there it pays to go.
struct Climb<'r> {
    ladder: Ladder<'r>,
    start: Step<'r>,
    top: Step<'r>,
}

impl<'r> Climb<'r> {
    fn new(ladder: Ladder<'r>, default: u64) -> Option<Self> {
        let start = ladder.nearest(default)?;
        let top = ladder.climb(start)?;
        Some(Self { ladder, start, top })
    }

    /// What the top is worth against the default, or the default against one read at a time; and what more is worth.
    fn evidence(&self) -> Vec<Evidence> {
        let Self { ladder, start, top } = self;
        let (first, last) = (ladder.from(0), ladder.from(u64::MAX));
        let gained = ladder
            .evidence(top, start)
            .or_else(|| first.and_then(|first| ladder.evidence(start, &first)));
        let beyond = last.and_then(|last| ladder.evidence(&last, top));
        gained.into_iter().chain(beyond).collect()
    }
}

/// Rule: the depth up to which throughput grows, beginning at the default. Lowered only where the device is limited and no
/// deeper level was better, not even by an interval above 1; and to a quarter at a time, as what is in flight in vain costs
/// less than what is missing.
fn concurrency(run_figures: &RunFigures<'_>, version: Version, default: u64) -> Ruling {
    let random = match random_reads(run_figures) {
        Ok(ladder) => ladder,
        Err(reason) => return Ruling::not_measured(reason),
    };
    let too_little = too_little(&random);
    let Some(random) = Climb::new(random, default) else { return too_little };
    let mut climbs = vec![random];
    if version.major() >= 18
        && let Ok(place) = run_figures.group("device/sequential-read")
    {
        climbs.extend(Climb::new(Ladder::by_depth(place, LARGE), default));
    }
    let evidence: Vec<Evidence> = climbs.iter().flat_map(Climb::evidence).collect();
    let raised = climbs.iter().filter(|climb| climb.top.value > climb.start.value);
    if let Some(climb) = raised.max_by_key(|climb| climb.top.value) {
        return raise(climb, default).evidence(evidence);
    }
    if let Some((value, limit)) = lower(run_figures, &climbs, default) {
        let why = format!(
            "random reads are {limit}: more than {value} in flight gain nothing, and make every read wait for longer"
        );
        return Ruling::set(value.to_string(), why).evidence(evidence);
    }
    Ruling::keep("more reads in flight than by default were not clearly faster, nor fewer as fast")
        .evidence(evidence)
}

fn raise(climb: &Climb<'_>, default: u64) -> Ruling {
    let Climb { ladder, top, .. } = climb;
    if top.value <= default {
        return Ruling::keep("more reads in flight than by default were not clearly faster");
    }
    let why = format!("{} grow up to {} in flight", what(ladder), top.value);
    let ruling = Ruling::set(top.value.to_string(), why);
    let most = "that is the most that was tried: more may be worth a try";
    let ruling = if ladder.is_last(top.value) { ruling.caution(most) } else { ruling };
    match &ladder.caution {
        Some(caution) => ruling.caution(caution.clone()),
        None => ruling,
    }
}

/// A lower value and the limit it follows from; `None` where the default is right.
fn lower(run_figures: &RunFigures<'_>, climbs: &[Climb<'_>], default: u64) -> Option<(u64, Limit)> {
    let limit = run_figures.limit("random-read")?;
    let least = default / LARGEST_CUT;
    let value = climbs.first()?.ladder.from(least)?.value;
    let enough = |climb: &Climb<'_>| {
        let step = climb.ladder.from(value);
        step.is_some_and(|step| climb.ladder.is_flat_above(&step))
    };
    (least > 0 && value < default && climbs.iter().all(enough)).then_some((value, limit))
}

fn random_reads<'r>(run_figures: &RunFigures<'r>) -> Result<Ladder<'r>, String> {
    Ok(Ladder::by_depth(run_figures.group("device/random-read")?, BLOCK))
}

fn too_little(ladder: &Ladder<'_>) -> Ruling {
    let name = ladder.place().name();
    Ruling::not_measured(format!("{name} has too few depths or turns to choose from"))
}

fn what(ladder: &Ladder<'_>) -> &'static str {
    if ladder.place().name() == "device/random-read" {
        "random reads"
    } else {
        "reads of 1 MB in order"
    }
}
