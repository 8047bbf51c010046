//! A RAID1 of two disks made on the spot: two loop devices with a btrfs that keeps all data on both, each limited to so many bytes a
//! second.
//!
//! ```text
//! DIR/image0 ─► /dev/loopA ─┐
//!                           ├─ btrfs, raid1 ─► DIR/mount       seen by this thread and those it starts
//! DIR/image1 ─► /dev/loopB ─┘
//! ```
//!
//! The mount is in a view of the mounts that the thread has for itself, and the loop devices go with their last use: what a
//! killed run made is gone with it, but for the images, which lie in the run's directory. Only a run that was killed before its
//! devices were mounted leaves devices behind, whose image has no name any more; the next one lets go of those.
//! Invariant: no device of others is touched, and none is limited but these two.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cancel::Cancel;
use crate::contestant::Contestant;
use crate::device_limit::DeviceLimit;
use crate::experiments::relation_scans::{RelationScans, Strategy};
use crate::machine::word;

/// Bytes of a disk beside the data: btrfs wants about 110 MB for itself.
const SPARE: u64 = 384 << 20;
/// What paths of images have in them.
const MARK: &str = "/pagemill-lab.";

/// Why there are none, in words.
type Reason = String;

/// Two disks, mirrored, mounted and slow.
#[derive(Debug)]
pub(crate) struct MirroredDisks {
    // Dropped in this order: the mount first, which lets the devices go.
    mount: Mount,
    limit: DeviceLimit,
    /// `loop0`.
    devices: Vec<String>,
}

impl MirroredDisks {
    /// Disks in a new directory with room for so many bytes of files, which are read at so many bytes a second each.
    pub(crate) fn create(directory: &Path, bytes: u64, limit: u64) -> Result<Self, Reason> {
        if !rustix::process::geteuid().is_root() {
            return Err("needs root".into());
        }
        let words = |error: std::io::Error| error.to_string();
        detach_leftovers();
        std::fs::create_dir(directory).map_err(words)?;
        pagemill_sys::own_mounts_for_thread().map_err(|error| format!("mounts: {error}"))?;
        let loops = (0..2)
            .map(|number| Loop::create(&directory.join(format!("image{number}")), bytes + SPARE))
            .collect::<Result<Vec<_>, _>>()?;
        let paths = || loops.iter().map(|each| each.0.as_str());
        let mut mkfs = Command::new("mkfs.btrfs");
        run(mkfs.args(["-q", "-f", "-d", "raid1", "-m", "raid1"]).args(paths()))?;
        let mount = Mount::create(&directory.join("mount"), &paths().collect::<Vec<_>>())?;
        let devices: Vec<String> =
            paths().map(|path| path.trim_start_matches("/dev/").to_owned()).collect();
        let numbers = devices.iter().map(|name| word(format!("/sys/block/{name}/dev")));
        let numbers: Option<Vec<String>> = numbers.collect();
        let numbers = numbers.ok_or("the numbers of the loop devices are not known")?;
        let limit = DeviceLimit::create(&numbers, limit).map_err(|error| error.to_string())?;
        // Their last use is the mount from here on.
        drop(loops);
        Ok(Self { mount, limit, devices })
    }

    /// Where files can be made.
    pub(crate) fn path(&self) -> &Path {
        &self.mount.0
    }

    /// One who scans relations on these disks while they are slow, and tells what each disk read.
    pub(crate) fn contestant<'d>(
        &'d self,
        scans: &RelationScans,
        strategy: Strategy,
    ) -> Contestant<'d> {
        let scans = scans.clone();
        let described = scans.contestant(strategy);
        let work = move |cancel: &Cancel| {
            let before = self.bytes_read();
            let _slow = self.limit.enter()?;
            let (_, mut work) = scans.perform(strategy, cancel)?;
            let read = before.iter().zip(self.bytes_read());
            let shares: Vec<_> =
                read.map(|(then, now)| format!("{} MB", now.saturating_sub(*then) >> 20)).collect();
            let disks = format!("the disks read {}", shares.join(" and "));
            work.note = Some(work.note.map_or(disks.clone(), |note| format!("{note}; {disks}")));
            Ok(work)
        };
        Contestant { perform: Ok(Box::new(work)), ..described }
    }

    /// Bytes that each disk has read (`/sys/block/…/stat`, the third number, in units of 512 bytes).
    fn bytes_read(&self) -> Vec<u64> {
        let of = |name: &String| {
            let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).ok()?;
            Some(text.split_whitespace().nth(2)?.parse::<u64>().ok()? * 512)
        };
        self.devices.iter().map(|name| of(name).unwrap_or(0)).collect()
    }
}

/// A loop device; let go of when dropped, or with its last use.
#[derive(Debug)]
struct Loop(String);

impl Loop {
    fn create(image: &Path, bytes: u64) -> Result<Self, Reason> {
        let made = std::fs::File::create_new(image).and_then(|file| file.set_len(bytes));
        made.map_err(|error| format!("an image: {error}"))?;
        let attach = |direct: &[&str]| {
            run(Command::new("losetup").args(["--find", "--show"]).args(direct).arg(image))
        };
        // Past the page cache, so that what is cold above is not cached below.
        let printed = attach(&["--direct-io=on"]).or_else(|_| attach(&[]))?;
        Ok(Self(printed.trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = run(Command::new("losetup").arg("--detach").arg(&self.0));
    }
}

/// Unmounted when dropped.
#[derive(Debug)]
struct Mount(PathBuf);

impl Mount {
    fn create(point: &Path, devices: &[&str]) -> Result<Self, Reason> {
        std::fs::create_dir(point).map_err(|error| error.to_string())?;
        let [first, others @ ..] = devices else { return Err("no devices".into()) };
        let mut mount = Command::new("mount");
        mount.args(["-t", "btrfs", "-o", "noatime"]).arg(first).arg(point);
        for device in others {
            mount.arg("-o").arg(format!("device={device}"));
        }
        run(&mut mount).map(|_| Self(point.into()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if run(Command::new("umount").arg(&self.0)).is_err() {
            let _ = run(Command::new("umount").arg("--lazy").arg(&self.0));
        }
    }
}

/// Lets go of devices of runs that are no more: their image lay in a run's directory, and is removed.
fn detach_leftovers() {
    let mut list = Command::new("losetup");
    list.args(["--list", "--noheadings", "--raw", "--output", "NAME,BACK-FILE"]);
    for line in run(&mut list).unwrap_or_default().lines() {
        if let Some((device, image)) = line.split_once(' ')
            && image.contains(MARK)
            && image.ends_with("(deleted)")
        {
            drop(Loop(device.to_owned()));
        }
    }
}

/// Runs a program, and returns what it prints.
fn run(command: &mut Command) -> Result<String, Reason> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let why = String::from_utf8_lossy(&output.stderr);
            Err(format!("{name}: {}", why.trim().replace('\n', " ")))
        }
    }
}
