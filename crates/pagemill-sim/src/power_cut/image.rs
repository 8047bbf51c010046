//! One image: the recorded directory as a power cut just before a call could leave it.
//!
//! | change | is there for good after |
//! | --- | --- |
//! | bytes written, space allocated, a file cut | a sync of the file that succeeded, unless one failed before |
//! | a name made, changed or removed | a sync of its directory; of both directories, if it moved |
//!
//! Everything else is up to the loss. Of two writes to the same place the later one never gives way to the earlier
//! one; but the later one may be lost and the earlier one kept.
//!
//! Invariant: changes are gone through in the order they were made, so that the same recording, call and loss give
//! the same image.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::recording::{Change, FileNumber, Recording};
use super::{Loss, copied_tree};
use crate::seed::Random;

/// What a device writes whole or not at all, in bytes.
const SECTOR: u64 = 512;

/// What becomes of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Lost,
    Torn,
}

/// Makes the image in `into`.
pub(super) fn make(recording: &Recording, call: usize, loss: Loss, into: &Path) -> io::Result<()> {
    copied_tree::copy(&recording.snapshot, into)?;
    let mut image = Image::new(recording, call, loss);
    let (names, contents) = image.replay()?;
    for (path, what) in &names {
        let target = into.join(path);
        match what {
            Name::Absent => remove_if_there(&target)?,
            Name::Directory => std::fs::create_dir_all(&target)?,
            Name::NoDirectory => {}
            // Where its directory was lost, the file is too.
            Name::File(_) | Name::Link(_) if !target.parent().is_some_and(Path::is_dir) => {}
            Name::Link(call) => {
                let made = recording.made.get(*call).map(|made| &made.change);
                if let Some(Change::Link { target: leads, .. }) = made {
                    std::os::unix::fs::symlink(leads, &target)?;
                }
            }
            Name::File(file) => {
                std::fs::write(&target, contents.get(file).map_or(&[][..], Vec::as_slice))?;
                std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o600))?;
            }
        }
    }
    // From the inside out. A directory is removed when it is empty: what was in it is gone with it, synced or not.
    for (path, _) in names.iter().rev().filter(|(_, what)| **what == Name::NoDirectory) {
        let target = into.join(path);
        if target.is_dir() {
            std::fs::remove_dir_all(target)?;
        }
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// What a name stands for, where it is not what it was at the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Absent,
    Directory,
    NoDirectory,
    File(FileNumber),
    /// That of the link that was made by a call.
    Link(usize),
}

type Names = BTreeMap<PathBuf, Name>;
type Contents = HashMap<FileNumber, Vec<u8>>;

struct Image<'r> {
    recording: &'r Recording,
    /// Calls that were made before the cut.
    call: usize,
    loss: Loss,
    random: Random,
    /// Under [`Loss::Ordered`]: changes of names and sizes before this call are in the journal.
    committed: usize,
    /// Of ten changes that may be lost, how many are: some images keep nearly all, some nearly nothing.
    lost_of_ten: u64,
}

impl<'r> Image<'r> {
    fn new(recording: &'r Recording, call: usize, loss: Loss) -> Self {
        let seed = match loss {
            Loss::Torn(seed) | Loss::Ordered(seed) => seed,
            Loss::All | Loss::None => 0,
        };
        let mut random = Random::new(seed ^ (call as u64) << 32);
        let committed = random.below(call as u64 + 1) as usize;
        let lost_of_ten = 1 + random.below(9);
        Self { recording, call, loss, random, committed, lost_of_ten }
    }

    /// Goes through all changes before the cut.
    fn replay(&mut self) -> io::Result<(Names, Contents)> {
        let (mut names, mut contents) = (Names::new(), Contents::new());
        for (number, origin) in self.recording.origins.iter().enumerate() {
            let Some(path) = origin else { continue };
            match std::fs::read(self.recording.snapshot.join(path)) {
                // Made by somebody else since.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                read => contents.insert(number, read?),
            };
            names.insert(path.clone(), Name::File(number));
        }
        let durable = self.durable();
        for call in 0..self.call.min(self.recording.made.len()) {
            let Some(made) = self.recording.made.get(call).filter(|made| made.done) else {
                continue;
            };
            let change = &made.change;
            let durable = durable.get(call).copied().unwrap_or_default();
            let fate = if durable { Fate::Kept } else { self.fate(call, change) };
            if let Some(file) = change.file() {
                let bytes = contents.entry(file).or_default();
                // What a file grows by goes with its size.
                let grows = !durable && change.end() > bytes.len() as u64;
                let fate = match self.loss {
                    Loss::Ordered(_) if grows && call < self.committed => Fate::Kept,
                    Loss::Ordered(_) if grows => Fate::Lost,
                    _ => fate,
                };
                self.change_bytes(bytes, change, fate);
            } else if fate == Fate::Kept {
                change_names(&mut names, change, call);
            }
        }
        Ok((names, contents))
    }

    /// Which changes had been made to last when the power went: seen from the end, since the first sync after a
    /// change decides about bytes (if it failed, no later one helps), and any about names.
    fn durable(&self) -> Vec<bool> {
        let made: Vec<_> = self.recording.made.iter().take(self.call).collect();
        let (mut files, mut directories) = (HashMap::new(), HashSet::new());
        let mut durable = vec![false; made.len()];
        for (call, durable) in made.into_iter().zip(&mut durable).rev() {
            let is_synced =
                |path: &Path| directories.contains(path.parent().unwrap_or(Path::new("")));
            *durable = match &call.change {
                Change::Rename { from, to, .. } => is_synced(from) && is_synced(to),
                Change::Create { path, .. }
                | Change::Remove { path }
                | Change::CreateDir { path }
                | Change::RemoveDir { path }
                | Change::Link { path, .. } => is_synced(path),
                change => change.file().is_some_and(|file| files.get(&file) == Some(&true)),
            };
            match &call.change {
                Change::Sync { file } => {
                    files.insert(*file, call.done);
                }
                Change::SyncDir { path } if call.done => {
                    directories.insert(path.clone());
                }
                _ => {}
            }
        }
        durable
    }

    fn fate(&mut self, call: usize, change: &Change) -> Fate {
        let is_write = matches!(change, Change::Write { .. });
        match self.loss {
            Loss::All => Fate::Lost,
            Loss::None => Fate::Kept,
            Loss::Ordered(_) if !is_write => {
                if call < self.committed {
                    Fate::Kept
                } else {
                    Fate::Lost
                }
            }
            Loss::Torn(_) | Loss::Ordered(_) if self.random.below(10) < self.lost_of_ten => {
                if is_write && self.random.below(2) == 0 {
                    Fate::Torn
                } else {
                    Fate::Lost
                }
            }
            Loss::Torn(_) | Loss::Ordered(_) => Fate::Kept,
        }
    }

    fn change_bytes(&mut self, bytes: &mut Vec<u8>, change: &Change, fate: Fate) {
        match (change, fate) {
            (_, Fate::Lost) => {}
            (Change::Write { offset, bytes: written, .. }, Fate::Kept) => {
                put(bytes, *offset, written)
            }
            (Change::Write { offset, bytes: written, .. }, Fate::Torn) => {
                self.tear(bytes, *offset, written);
            }
            (Change::Allocate { range, .. }, _) if range.end > bytes.len() as u64 => {
                resize(bytes, range.end);
            }
            (Change::SetLen { len, .. }, _) => resize(bytes, *len),
            _ => {}
        }
    }

    /// Puts some sectors of a write. The file may have grown by all of it nevertheless.
    fn tear(&mut self, bytes: &mut Vec<u8>, offset: u64, written: &[u8]) {
        let end = offset + written.len() as u64;
        if self.random.below(2) == 0 && end > bytes.len() as u64 {
            resize(bytes, end);
        }
        let mut at = offset;
        while at < end {
            let next = (at - at % SECTOR + SECTOR).min(end);
            if self.random.below(2) == 0 {
                let part = (at - offset) as usize..(next - offset) as usize;
                put(bytes, at, written.get(part).unwrap_or_default());
            }
            at = next;
        }
    }
}

fn change_names(names: &mut Names, change: &Change, call: usize) {
    match change {
        Change::Link { path, .. } => {
            names.insert(path.clone(), Name::Link(call));
        }
        Change::Create { path, file } => {
            names.insert(path.clone(), Name::File(*file));
        }
        Change::Rename { from, to, file } => {
            // A name that an earlier, lost change did not give is not taken away either.
            names.insert(from.clone(), Name::Absent);
            names.insert(to.clone(), Name::File(*file));
        }
        Change::Remove { path } => {
            names.insert(path.clone(), Name::Absent);
        }
        Change::CreateDir { path } => {
            names.insert(path.clone(), Name::Directory);
        }
        Change::RemoveDir { path } => {
            names.insert(path.clone(), Name::NoDirectory);
        }
        _ => {}
    }
}

fn put(bytes: &mut Vec<u8>, offset: u64, written: &[u8]) {
    let (start, end) = (offset as usize, offset as usize + written.len());
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    if let Some(place) = bytes.get_mut(start..end) {
        place.copy_from_slice(written);
    }
}

fn resize(bytes: &mut Vec<u8>, len: u64) {
    bytes.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
}
