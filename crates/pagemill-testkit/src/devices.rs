//! Real devices made on the spot: loop devices, file systems on them, mirrors of two.
//!
//! For tests and benchmarks that ask what a reader does on btrfs RAID1, on compressed or sparse files, on XFS, on a
//! device that is slow. All of it needs root, and a machine without one of the parts gives [`Unavailable`] with the
//! reason; [`or_skip`] turns that into a line `SKIPPED: …` that no test runner swallows, or, under
//! `PAGEMILL_REQUIRE_DEVICES=1`, into a failure.
//!
//! ```text
//! DIR/pagemill-devices-PID-N/image0  ──► /dev/loopA ─┐
//!                            image1  ──► /dev/loopB ─┴─ mkfs ─► DIR/pagemill-devices-PID-N/mount
//! ```
//!
//! Must hold:
//! 1. Whatever was made is taken down when its value is dropped, in the order mount, loop device, image, also after
//!    an error half way. What a killed process left is found by its name and taken down by [`clean`], which leaves
//!    alone what belongs to a process that lives.
//! 2. The loop devices read their images with direct I/O where the file system below can, so that the page cache
//!    holds the files above once and never the image: what is dropped above is really read again.

use std::fmt::{self, Display};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};

use crate::control_group;

/// How everything made here begins, followed by the process's number.
pub(crate) const PREFIX: &str = "pagemill-devices-";

/// Why this machine cannot give what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// The reason, for a line `SKIPPED: REASON`.
    pub reason: String,
}

impl Unavailable {
    pub(crate) fn new(reason: impl Into<String>) -> Unavailable {
        Unavailable { reason: reason.into() }
    }
}

impl Display for Unavailable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

impl std::error::Error for Unavailable {}

impl From<anyhow::Error> for Unavailable {
    fn from(error: anyhow::Error) -> Unavailable {
        Unavailable::new(format!("{error:#}").replace('\n', " "))
    }
}

/// What was made, or nothing after saying loudly that `what` is skipped and why.
///
/// # Errors
/// When it is not available and `PAGEMILL_REQUIRE_DEVICES=1` asks for it.
pub fn or_skip<T>(what: &str, made: Result<T, Unavailable>) -> Result<Option<T>> {
    let reason = match made {
        Ok(made) => return Ok(Some(made)),
        Err(Unavailable { reason }) => reason,
    };
    if std::env::var_os("PAGEMILL_REQUIRE_DEVICES").is_some_and(|value| value == "1") {
        bail!("{what} is asked for by PAGEMILL_REQUIRE_DEVICES and not available: {reason}");
    }
    // Written past the test runner, which keeps what a passing test prints to itself; in one piece, since others write too.
    let line = format!("\nSKIPPED: {what}: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    Ok(None)
}

/// A name that no other value and no other process has.
pub(crate) fn unique_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A directory for the images and the mount point, removed when dropped.
#[derive(Debug)]
struct ImageDir(PathBuf);

impl ImageDir {
    fn create(dir: &Path) -> Result<ImageDir, Unavailable> {
        let path = dir.canonicalize().context("the directory for images")?.join(unique_name());
        std::fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(ImageDir(path))
    }
}

impl Drop for ImageDir {
    fn drop(&mut self) {
        // Never through a mount that would not go: its files are not ours to remove.
        if !is_mount_point(&self.0.join("mount")) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// A block device whose blocks lie in an image file.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    /// Makes an image of this many bytes, without blocks until they are written, and a device on it.
    fn create(image: &Path, bytes: u64) -> Result<LoopDevice, Unavailable> {
        if !Path::new("/dev/loop-control").exists() {
            return Err(Unavailable::new("no loop devices (/dev/loop-control is missing)"));
        }
        let file = std::fs::File::create(image).context("creating an image")?;
        file.set_len(bytes).context("sizing an image")?;
        let attach = |direct: &[&str]| {
            let mut losetup = Command::new("losetup");
            run(losetup.args(["--find", "--show"]).args(direct).arg(image))
        };
        let printed = attach(&["--direct-io=on"]).or_else(|_| attach(&[]))?;
        Ok(LoopDevice { path: PathBuf::from(printed.trim()) })
    }

    /// The device, as `/dev/loop0`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its major and minor number, as control groups spell them: `7:0`.
    pub fn number(&self) -> Result<String> {
        Ok(self.attribute("dev")?.trim().to_owned())
    }

    /// Bytes read from it since it was made.
    pub fn bytes_read(&self) -> Result<u64> {
        Ok(self.statistic(2)? * 512)
    }

    /// Requests for reading that it has completed.
    pub fn reads(&self) -> Result<u64> {
        self.statistic(0)
    }

    /// One number of `/sys/block/…/stat` (Linux, Documentation/block/stat.rst).
    fn statistic(&self, index: usize) -> Result<u64> {
        let text = self.attribute("stat")?;
        text.split_whitespace()
            .nth(index)
            .context("a short line of statistics")?
            .parse()
            .context("an odd line of statistics")
    }

    fn attribute(&self, name: &str) -> Result<String> {
        let device = self.path.file_name().context("a device without a name")?;
        let path = Path::new("/sys/block").join(device).join(name);
        std::fs::read_to_string(&path).with_context(|| path.display().to_string())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        report(run(Command::new("losetup").arg("--detach").arg(&self.path)));
    }
}

/// What a volume is formatted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4.
    Ext4,
    /// XFS, with reflinks where mkfs can.
    Xfs,
    /// btrfs on one device.
    Btrfs,
    /// btrfs on one device, every file compressed with zstd.
    BtrfsCompressed,
    /// btrfs on two devices, data and metadata on both.
    BtrfsRaid1,
}

impl FileSystem {
    /// All of them.
    pub const ALL: [FileSystem; 5] =
        [Self::Ext4, Self::Xfs, Self::Btrfs, Self::BtrfsCompressed, Self::BtrfsRaid1];

    /// A name for messages and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "XFS",
            Self::Btrfs => "btrfs",
            Self::BtrfsCompressed => "btrfs (compress-force=zstd)",
            Self::BtrfsRaid1 => "btrfs RAID1 on two devices",
        }
    }

    const fn device_count(self) -> usize {
        if matches!(self, Self::BtrfsRaid1) { 2 } else { 1 }
    }

    const fn mkfs(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &["mkfs.ext4", "-q", "-F"],
            Self::Xfs => &["mkfs.xfs", "-q", "-f"],
            Self::Btrfs | Self::BtrfsCompressed => &["mkfs.btrfs", "-q", "-f"],
            Self::BtrfsRaid1 => &["mkfs.btrfs", "-q", "-f", "-d", "raid1", "-m", "raid1"],
        }
    }

    const fn mount_options(self) -> &'static str {
        match self {
            Self::BtrfsCompressed => "noatime,compress-force=zstd",
            _ => "noatime",
        }
    }
}

/// A mounted file system on loop devices.
#[derive(Debug)]
pub struct Volume {
    mount: Mount,
    devices: Vec<LoopDevice>,
    // Last: fields are dropped in this order, and the images lie in it.
    _images: ImageDir,
}

impl Volume {
    /// Makes devices of `device_bytes` each with images in `dir`, and a file system on them. XFS wants 300 MiB.
    ///
    /// # Errors
    /// [`Unavailable`] without root, loop devices, the mkfs program, the kernel's file system, or the right to mount.
    pub fn create(kind: FileSystem, dir: &Path, device_bytes: u64) -> Result<Volume, Unavailable> {
        require_root()?;
        let images = ImageDir::create(dir)?;
        let devices = (0..kind.device_count())
            .map(|index| LoopDevice::create(&images.0.join(format!("image{index}")), device_bytes))
            .collect::<Result<Vec<_>, _>>()?;
        let paths = || devices.iter().map(LoopDevice::path);
        let (program, flags) = kind.mkfs().split_first().context("no mkfs")?;
        run(Command::new(program).args(flags).args(paths()))?;
        let point = images.0.join("mount");
        std::fs::create_dir(&point).context("creating a mount point")?;
        let first = devices.first().context("no device")?;
        let mut mount = Command::new("mount");
        mount.args(["-o", kind.mount_options()]).arg(first.path()).arg(&point);
        // A kernel that has not scanned the second device of a mirror is told of it.
        for device in devices.iter().skip(1) {
            mount.arg("-o").arg(format!("device={}", device.path().display()));
        }
        run(&mut mount)?;
        Ok(Volume { mount: Mount(point), devices, _images: images })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.mount.0
    }

    /// The devices it lies on.
    pub fn devices(&self) -> &[LoopDevice] {
        &self.devices
    }

    /// How far the kernel reads ahead for files on it, in kB; btrfs has a setting of its own, apart from its devices'.
    pub fn read_ahead_kb(&self) -> Result<u64> {
        let mut stat = Command::new("stat");
        let numbers = run(stat.args(["--format=%Hd:%Ld"]).arg(self.path()))?;
        let mut mountpoint = Command::new("mountpoint");
        // The number of the file system as the kernel's bdi knows it, which stat's is not on btrfs.
        let own = run(mountpoint.arg("-d").arg(self.path())).unwrap_or(numbers);
        let path = format!("/sys/class/bdi/{}/read_ahead_kb", own.trim());
        let text = std::fs::read_to_string(&path)
            .or_else(|_| self.btrfs_read_ahead())
            .with_context(|| path)?;
        text.trim().parse().context("an odd read_ahead_kb")
    }

    fn btrfs_read_ahead(&self) -> std::io::Result<String> {
        let device = self.devices.first().map(|device| device.path.clone()).unwrap_or_default();
        let device = device.file_name().unwrap_or_default().to_owned();
        for entry in std::fs::read_dir("/sys/fs/btrfs")? {
            let entry = entry?.path();
            if entry.join("devices").join(&device).exists() {
                return std::fs::read_to_string(entry.join("bdi/read_ahead_kb"));
            }
        }
        Err(std::io::ErrorKind::NotFound.into())
    }
}

/// Unmounts when dropped.
#[derive(Debug)]
struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}

/// Unmounts; lazily when something still holds it, so that the devices go when that ends.
fn unmount(point: &Path) {
    if run(Command::new("umount").arg(point)).is_err() {
        report(run(Command::new("umount").arg("--lazy").arg(point)));
    }
}

fn is_mount_point(path: &Path) -> bool {
    mount_points().iter().any(|point| point == path)
}

/// Every mount point, deepest last mounted first.
fn mount_points() -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = text.lines().rev().filter_map(|line| line.split(' ').nth(1)).map(PathBuf::from);
    points.collect()
}

/// Takes down what processes that were killed have left: mounts, loop devices, images, control groups. Gives a line
/// for each thing. What belongs to a living process stays.
pub fn clean() -> Result<Vec<String>> {
    let mut done = Vec::new();
    for point in mount_points().iter().filter(|point| is_leftover(point)) {
        unmount(point);
        done.push(format!("unmounted {}", point.display()));
    }
    let mut losetup = Command::new("losetup");
    losetup.args(["--list", "--noheadings", "--raw", "--output", "NAME,BACK-FILE"]);
    for line in run(&mut losetup).unwrap_or_default().lines() {
        let Some((device, image)) = line.split_once(' ') else { continue };
        let image = Path::new(image.trim_end_matches(" (deleted)"));
        if !is_leftover(image) {
            continue;
        }
        run(Command::new("losetup").arg("--detach").arg(device))?;
        done.push(format!("detached {device}"));
        if let Some(images) = image.parent()
            && !is_mount_point(&images.join("mount"))
            && std::fs::remove_dir_all(images).is_ok()
        {
            done.push(format!("removed {}", images.display()));
        }
    }
    done.extend(control_group::clean());
    Ok(done)
}

/// Whether a part of this path was named here by a process that is gone.
pub(crate) fn is_leftover(path: &Path) -> bool {
    let owner = path.iter().find_map(|part| owner_of(part.to_str()?));
    owner.is_some_and(|owner| !Path::new("/proc").join(owner.to_string()).exists())
}

fn owner_of(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

pub(crate) fn require_root() -> Result<(), Unavailable> {
    use std::os::unix::fs::MetadataExt;
    let uid = std::fs::metadata("/proc/self").map_or(1, |metadata| metadata.uid());
    if uid == 0 { Ok(()) } else { Err(Unavailable::new("needs root")) }
}

/// Runs a program and gives what it prints.
fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("{name} is not installed"))?;
    if !output.status.success() {
        bail!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A failure while something is taken down: said, for nothing else can be done.
fn report(outcome: Result<String>) {
    if let Err(error) = outcome {
        let _ = writeln!(std::io::stderr(), "left behind: {error:#}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_process_named_is_a_leftover() {
        assert_eq!(owner_of("pagemill-devices-12-3"), Some(12));
        assert_eq!(owner_of("pagemill-pg12"), None);
        let own = PathBuf::from("/x").join(unique_name()).join("mount");
        assert!(!is_leftover(&own));
        assert!(is_leftover(Path::new("/x/pagemill-devices-4294967295-0/image0")));
        assert!(!is_leftover(Path::new("/x/y")));
    }
}
