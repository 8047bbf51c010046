//! Trying what tells the kernel about reads to come, and what tells of the page cache.
//!
//! Advice may be accepted and ignored, so each is held against the page cache: pages that were made to
//! leave it must come back by the advice alone. Where pages cannot be made to leave (files in
//! memory, files of others), that the call is accepted is all that can be said.

use std::io;

use pagemill_sys::{MapAdvice, Mapping, cachestat, readahead};
use rustix::fd::AsFd as _;
use rustix::fs::Advice;
use rustix::io::Errno;

use super::errno;
use super::finding::{Call, Finding, State};
use super::kernel::Kernel;
use super::trial_file::TrialFile;

const CACHESTAT: Call = Call { name: "cachestat", label: "cachestat", since: (6, 5), remedy: None };
const MINCORE: Call = Call { name: "mincore", label: "mincore", since: (2, 4), remedy: None };
const DONTNEED: Call =
    Call { name: "fadvise_dontneed", label: "posix_fadvise DONTNEED", since: (2, 6), remedy: None };
const WILLNEED: Call =
    Call { name: "fadvise_willneed", label: "posix_fadvise WILLNEED", since: (2, 6), remedy: None };
const READAHEAD: Call = Call { name: "readahead", label: "readahead", since: (2, 4), remedy: None };
const MADVISE_WILLNEED: Call =
    Call { name: "madvise_willneed", label: "madvise WILLNEED", since: (2, 4), remedy: None };
const MADVISE_POPULATE: Call = Call {
    name: "madvise_populate_read",
    label: "madvise POPULATE_READ",
    since: (5, 14),
    remedy: None,
};
const MADVISE_SEQUENTIAL: Call =
    Call { name: "madvise_sequential", label: "madvise SEQUENTIAL", since: (2, 4), remedy: None };

/// The findings about advice and the page cache.
pub(super) fn findings(trial: &TrialFile, kernel: &Kernel) -> Vec<Finding> {
    let fetching =
        |call: &Call, advice: &dyn Fn() -> io::Result<()>| fetched(call, trial, kernel, advice);
    vec![
        page_cache(&CACHESTAT, trial, kernel, || {
            Ok(cachestat(&trial.file, 0..trial.len as u64)?.cached)
        }),
        page_cache(&MINCORE, trial, kernel, || trial.resident_pages()),
        dontneed(trial, kernel),
        fetching(&WILLNEED, &|| Ok(rustix::fs::fadvise(&trial.file, 0, None, Advice::WillNeed)?)),
        fetching(&READAHEAD, &|| readahead(&trial.file, 0, trial.len)),
        fetching(&MADVISE_WILLNEED, &|| advise(trial, MapAdvice::WillNeed)),
        fetching(&MADVISE_POPULATE, &|| advise(trial, MapAdvice::PopulateRead)),
        sequential(trial, kernel),
    ]
}

/// Calls that tell what is cached: all of a file just read, none of one just dropped.
fn page_cache(
    call: &Call,
    trial: &TrialFile,
    kernel: &Kernel,
    cached: impl Fn() -> io::Result<u64>,
) -> Finding {
    trial.fill_cache();
    let full = match cached() {
        Ok(full) => full,
        Err(error) if errno::of(&error) == Errno::PERM && !trial.is_own() => {
            return call
                .untried("EPERM: the kernel tells it of one's own files only")
                .with_remedy("run as the owner of the files");
        }
        Err(error) => return call.refused(errno::of(&error), kernel),
    };
    if full == 0 {
        let seen = format!("0 of {} pages after a read: it looks at another file", trial.pages());
        return call.found(State::NoEffect, seen).with_remedy("on overlayfs, ask mincore");
    }
    let was_dropped = trial.drop_cached().is_some();
    let empty = cached().unwrap_or(full);
    let seen = format!("{full} of {} pages after a read", trial.pages());
    match was_dropped {
        true if empty < full => call.works(format!("{seen}, {empty} after DONTNEED")),
        true => call.found(State::Accepted, format!("{seen}, and no page can be made to leave")),
        false => call.found(State::Accepted, seen),
    }
}

fn dontneed(trial: &TrialFile, kernel: &Kernel) -> Finding {
    if !trial.is_own() {
        return DONTNEED.untried("it would make pages of a file in use leave the cache");
    }
    trial.fill_cache();
    let before = trial.cached_pages();
    let synced = rustix::fs::fdatasync(&trial.file);
    if let Err(error) =
        synced.and_then(|()| rustix::fs::fadvise(&trial.file, 0, None, Advice::DontNeed))
    {
        return DONTNEED.refused(error, kernel);
    }
    match (before, trial.cached_pages()) {
        (Some(before), Some(after)) if after < before => {
            DONTNEED.works(format!("{before} pages were cached, then {after}"))
        }
        (Some(_), Some(after)) => {
            DONTNEED.found(State::NoEffect, format!("{after} pages stay cached all the same"))
        }
        _ => DONTNEED.found(State::Accepted, "nothing here tells what is cached"),
    }
}

/// Advice that fetches pages, held against the page cache.
fn fetched(
    call: &Call,
    trial: &TrialFile,
    kernel: &Kernel,
    advice: &dyn Fn() -> io::Result<()>,
) -> Finding {
    let stayed = trial.drop_cached();
    if let Err(error) = advice() {
        return call.refused(errno::of(&error), kernel);
    }
    let all = trial.pages();
    match (stayed, trial.is_own().then(|| trial.await_cached()).flatten()) {
        (Some(stayed), Some(came)) if came > stayed => {
            call.works(format!("{came} of {all} pages came by it"))
        }
        (Some(stayed), Some(_)) if stayed < all => {
            let finding = call.found(State::NoEffect, format!("none of {all} pages came by it"));
            finding.with_remedy("raise read_ahead_kb of the device, if it is 0")
        }
        (Some(_), Some(_)) => {
            call.found(State::Accepted, "its effect cannot be seen: no page leaves the cache here")
        }
        _ => call.found(State::Accepted, "its effect cannot be seen on a file of others"),
    }
}

fn advise(trial: &TrialFile, advice: MapAdvice) -> io::Result<()> {
    Mapping::new(trial.file.as_fd(), trial.len)?.advise(0..trial.len, advice)
}

fn sequential(trial: &TrialFile, kernel: &Kernel) -> Finding {
    match advise(trial, MapAdvice::Sequential) {
        Ok(()) => MADVISE_SEQUENTIAL
            .found(State::Accepted, "it changes how page faults read ahead, which no call tells"),
        Err(error) => MADVISE_SEQUENTIAL.refused(errno::of(&error), kernel),
    }
}
