//! How many reads at once, and by whom: `io_method`, `io_workers`, `effective_io_concurrency`,
//! `maintenance_io_concurrency`.
//!
//! All four follow from the depth at which random reads of 8 kB, past the page cache, stop growing. From 18 on scans in
//! order also read ahead by that many, so that the depth at which reads of 1 MB in order stop growing counts as well.
//! Invariant: the answer is a depth that was measured.

use crate::advice::ladder::{Ladder, Step};
use crate::advice::sight::{Pair, Sight};
use crate::advice::version::Version;
use crate::advice::{Evidence, Ruling};

const BLOCK: u64 = 8 << 10;
const LARGE: u64 = 1 << 20;

/// The most workers there may be (18).
const MOST_WORKERS: u64 = 32;
/// The default number of workers (18).
const WORKERS: u64 = 3;

/// Rule: `io_uring` where the ring was faster than threads by the threshold with as many in flight as there are threads, here
/// and there or in order, and slower in none of the comparisons; else the default. Deeper queues are no comparison, as more
/// threads would have more in flight too; but where the ring is slower in spite of more, it is not advised.
/// `sync` is never advised: it looks ahead by advice to the kernel, which no cell here does.
pub(super) fn io_method(sight: &Sight<'_>, _version: Version) -> Ruling {
    let workers = pagemill_io::WORKERS as u64;
    let pair = |name, block, depth| {
        let place = sight.group(name)?;
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

/// Rule: a worker does one read at a time, so as many as random reads gain from being in flight, 32 at most; never fewer
/// than the default, as idle workers cost next to nothing.
pub(super) fn io_workers(sight: &Sight<'_>, _version: Version) -> Ruling {
    let ladder = match random_reads(sight) {
        Ok(ladder) => ladder,
        Err(reason) => return Ruling::not_measured(reason),
    };
    let Some(stop) = ladder.stop() else { return too_little(&ladder) };
    let reference = ladder.up_to(WORKERS).unwrap_or(stop);
    let gained = ladder.pair(&stop, &reference).filter(Pair::is_faster);
    let evidence = grown(&ladder, &stop);
    match gained {
        Some(pair) if stop.value > WORKERS => {
            let value = stop.value.min(MOST_WORKERS);
            let why = format!(
                "a worker has one read in flight, and random reads grow up to {}",
                stop.value
            );
            Ruling::set(value.to_string(), why)
                .evidence([pair.evidence])
                .evidence(evidence)
                .caution("it has an effect with io_method = worker only; each worker is a process")
        }
        _ => Ruling::keep("random reads do not gain from more than three in flight")
            .evidence(evidence),
    }
}

pub(super) fn effective_io_concurrency(sight: &Sight<'_>, version: Version) -> Ruling {
    let default = if version.major() >= 18 { 16 } else { 1 };
    let ruling = concurrency(sight, version, default);
    if version.major() >= 18 || ruling.value.is_none() {
        return ruling;
    }
    ruling.caution("before PostgreSQL 18 bitmap heap scans use it, and hardly anything else")
}

pub(super) fn maintenance_io_concurrency(sight: &Sight<'_>, version: Version) -> Ruling {
    concurrency(sight, version, if version.major() >= 18 { 16 } else { 10 })
}

/// Rule: the depth at which throughput stops growing. Raised only when that depth is faster than the default's by the
/// threshold; lowered only when the default's was seen not to be, since what is in flight in vain makes all others wait.
fn concurrency(sight: &Sight<'_>, version: Version, default: u64) -> Ruling {
    let random = match random_reads(sight) {
        Ok(ladder) => ladder,
        Err(reason) => return Ruling::not_measured(reason),
    };
    let Some(stop) = random.stop() else { return too_little(&random) };
    let mut climbs = vec![(random, stop)];
    if version.major() >= 18
        && let Ok(place) = sight.group("device/sequential-read")
    {
        let ladder = Ladder::by_depth(place, LARGE);
        climbs.extend(ladder.stop().map(|stop| (ladder, stop)));
    }
    let deepest = climbs.iter().max_by_key(|(_, stop)| stop.value);
    let Some((ladder, stop)) = deepest else { return Ruling::not_measured("nothing was measured") };
    let value = stop.value;
    let evidence: Vec<Evidence> =
        climbs.iter().flat_map(|(ladder, stop)| grown(ladder, stop)).collect();
    let ruling = match value.cmp(&default) {
        std::cmp::Ordering::Greater => raised(ladder, stop, default),
        std::cmp::Ordering::Less => lowered(&climbs, value, default),
        std::cmp::Ordering::Equal => {
            Ruling::keep(format!("throughput was not seen to grow beyond {value} reads in flight"))
        }
    };
    let caution = climbs.iter().find_map(|(ladder, _)| ladder.caution.clone());
    let ruling = ruling.evidence(evidence);
    match caution {
        Some(caution) if ruling.value.is_some() => ruling.caution(caution),
        _ => ruling,
    }
}

fn raised(ladder: &Ladder<'_>, stop: &Step<'_>, default: u64) -> Ruling {
    let reference = ladder.up_to(default);
    let pair = reference.and_then(|reference| ladder.pair(stop, &reference));
    let Some(pair) = pair.filter(Pair::is_faster) else {
        return Ruling::keep(
            "more reads in flight were not seen to be clearly faster than the default",
        );
    };
    let why = format!("{} grow up to {} in flight", what(ladder), stop.value);
    let ruling = Ruling::set(stop.value.to_string(), why).evidence([pair.evidence]);
    match ladder.is_last(stop.value) {
        true => ruling.caution("that is the most that was tried: more may be worth a try"),
        false => ruling,
    }
}

fn lowered(climbs: &[(Ladder<'_>, Step<'_>)], value: u64, default: u64) -> Ruling {
    let mut evidence = Vec::new();
    for (ladder, stop) in climbs {
        let reference = ladder.from(default);
        let pair = reference.and_then(|reference| ladder.pair(&reference, stop));
        match pair.filter(Pair::is_no_faster) {
            Some(pair) => evidence.push(pair.evidence),
            None => {
                let why = "fewer reads in flight may do, but the figures cannot tell";
                return Ruling::keep(why);
            }
        }
    }
    let why = format!(
        "more than {value} in flight gains nothing here, and makes every read wait for longer"
    );
    Ruling::set(value.to_string(), why).evidence(evidence)
}

fn random_reads<'r>(sight: &Sight<'r>) -> Result<Ladder<'r>, String> {
    Ok(Ladder::by_depth(sight.group("device/random-read")?, BLOCK))
}

fn too_little(ladder: &Ladder<'_>) -> Ruling {
    let name = ladder.place().name();
    Ruling::not_measured(format!("{name} has too few depths or turns to choose from"))
}

/// What the depth at which it stops is worth against one read at a time.
fn grown(ladder: &Ladder<'_>, stop: &Step<'_>) -> Vec<Evidence> {
    let first = ladder.from(0);
    let last = ladder.from(u64::MAX);
    let against_first = first.and_then(|first| ladder.evidence(stop, &first));
    let last_against = last.and_then(|last| ladder.evidence(&last, stop));
    against_first.into_iter().chain(last_against).collect()
}

fn what(ladder: &Ladder<'_>) -> &'static str {
    if ladder.place().name() == "device/random-read" {
        "random reads"
    } else {
        "reads of 1 MB in order"
    }
}
