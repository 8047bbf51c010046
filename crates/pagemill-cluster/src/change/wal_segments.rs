//! The segments that a change adds to the WAL, and their removal when the change is given up.
//!
//! A server removes segments that lie before its last checkpoint, and never those behind the end of its WAL, which it
//! takes for segments made ready. So the WAL of a large change that did not take place would lie there for good.
//!
//! Invariants: only segments behind the last shutdown checkpoint are removed, which no start reads; those that were there
//! before the change stay, as servers make some ready.

use std::path::PathBuf;

use pagemill_format::Lsn;
use pagemill_format::wal::SegmentName;
use pagemill_wal::WalDirectory;

use crate::data_directory::Cluster;
use crate::error::Result;

/// More than a shutdown checkpoint's record takes, headers of pages included.
const CHECKPOINT_ROOM: u64 = 8192;
/// How servers, and we, name a segment that is being made.
const UNNAMED: &str = "xlogtemp.";

/// The number of the last segment of the cluster's timeline that is there, or that the WAL ends in.
pub(super) fn last(cluster: &Cluster, directory: &WalDirectory) -> Result<u64> {
    let entries = cluster.storage().read_dir(&directory.path)?;
    let numbers = entries.iter().filter_map(|entry| number_of(entry.name.to_str()?, directory));
    Ok(numbers.max().unwrap_or(0).max(end_segment(cluster, directory)))
}

/// The segments of a timeline behind one of them, and those that were being made, with their directory.
pub(super) fn behind(
    cluster: &Cluster,
    timeline: u32,
    last: u64,
) -> Result<(PathBuf, Vec<PathBuf>)> {
    let directory = WalDirectory::of_cluster(cluster.path(), cluster.control())?;
    let last = last.max(end_segment(cluster, &directory));
    let is_behind = |name: &str| {
        let number = number_of(name, &directory).filter(|_| directory.timeline == timeline);
        name.starts_with(UNNAMED) || number.is_some_and(|number| number > last)
    };
    let mut files = Vec::new();
    for entry in cluster.storage().read_dir(&directory.path)? {
        if entry.name.to_str().is_some_and(is_behind) {
            files.push(directory.path.join(&entry.name));
        }
    }
    Ok((directory.path, files))
}

/// Removes the segments of a timeline behind one of them, durably.
pub(super) fn remove_behind(cluster: &Cluster, timeline: u32, last: u64) -> Result<()> {
    let storage = cluster.storage();
    let (directory, files) = behind(cluster, timeline, last)?;
    for path in &files {
        storage.remove_if_there(path)?;
    }
    if files.is_empty() { Ok(()) } else { Ok(storage.sync_dir(&directory)?) }
}

/// The segment that the record of the last checkpoint ends in, or the one behind it.
fn end_segment(cluster: &Cluster, directory: &WalDirectory) -> u64 {
    let checkpoint = cluster.control().checkpoint_location;
    directory.segment_of(Lsn(checkpoint.0.saturating_add(CHECKPOINT_ROOM))).number
}

/// The number in the name of a segment of the cluster's timeline.
fn number_of(name: &str, directory: &WalDirectory) -> Option<u64> {
    let segment = SegmentName::parse(name, directory.segment_size)?;
    (segment.timeline == directory.timeline).then_some(segment.number)
}
