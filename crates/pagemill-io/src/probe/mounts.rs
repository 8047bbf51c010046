//! The table of mounts, and which of them a path lies on.
//!
//! `/proc/self/mountinfo` has one line per mount, as proc(5) describes it:
//! `36 35 98:0 /root /mount/point rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue`.
//! Why by mount and not by the device number of a file: on btrfs, overlayfs and others that number is
//! made up, and stands in no table.
//!
//! Invariant: any text parses; a line that is not of that form is left out.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    id: u64,
    /// Major and minor number, `8:1`; the major one is 0 where no one block device is behind it.
    pub(super) device: String,
    pub(super) mount_point: PathBuf,
    /// Those of the mount, then those of the file system that are not among them.
    pub(super) options: Vec<String>,
    pub(super) file_system: String,
    /// What is mounted: a device, a host and path, or any word.
    pub(super) source: String,
}

/// All mounts that `text` lists.
pub(super) fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(mount).collect()
}

fn mount(line: &str) -> Option<Mount> {
    let (own, of_file_system) = line.split_once(" - ")?;
    let mut own = own.split(' ');
    let id = own.next()?.parse().ok()?;
    let device = own.nth(1)?.to_owned();
    let mount_point = PathBuf::from(OsString::from_vec(unescaped(own.nth(1)?)));
    let mut options: Vec<String> = own.next()?.split(',').map(str::to_owned).collect();
    let mut of_file_system = of_file_system.split(' ');
    let file_system = of_file_system.next()?.to_owned();
    let source = String::from_utf8_lossy(&unescaped(of_file_system.next()?)).into_owned();
    let further = of_file_system.next().unwrap_or_default().split(',');
    add_options(&mut options, further.filter(|option| !option.is_empty()));
    Some(Mount { id, device, mount_point, options, file_system, source })
}

/// Adds the options of the file system that are not among those of the mount. Either may be read-only,
/// and then nothing can be written.
fn add_options<'a>(options: &mut Vec<String>, further: impl Iterator<Item = &'a str>) {
    for option in further {
        if option == "ro" {
            options.retain(|own| own != "rw" && own != "ro");
            options.insert(0, "ro".to_owned());
        } else if option != "rw" && !options.iter().any(|own| own == option) {
            options.push(option.to_owned());
        }
    }
}

/// Blanks, tabs, line feeds and backslashes stand in the table as `\` and three octal digits.
fn unescaped(field: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let [first, tail @ ..] = rest {
        match (first, octal(tail)) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = tail.get(3..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

fn octal(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits.get(..3)?).ok()?;
    u8::from_str_radix(digits, 8).ok()
}

/// The mount that `path` (absolute, without symbolic links) lies on: the one of that number, or else
/// the one with the longest mount point above the path, the latest where there are several.
pub(super) fn of_path<'a>(mounts: &'a [Mount], path: &Path, id: Option<u64>) -> Option<&'a Mount> {
    let by_id = id.and_then(|id| mounts.iter().find(|mount| mount.id == id));
    by_id.or_else(|| {
        let above = mounts.iter().filter(|mount| path.starts_with(&mount.mount_point));
        above.max_by_key(|mount| mount.mount_point.components().count())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLE: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
44 27 0:41 /sub /mnt/with\\040blank rw,relatime shared:1 master:2 - btrfs /dev/loop2 rw,subvol=/\n\
nonsense\n\
45 27 0:42 / /mnt rw - tmpfs tmpfs rw\n";

    #[test]
    fn a_line_gives_its_fields_with_and_without_optional_ones() {
        let mounts = parse(TABLE);
        assert_eq!(mounts.len(), 3);
        assert_eq!(mounts[0].device, "254:0");
        assert_eq!(mounts[0].options, ["rw", "relatime", "discard"]);
        assert_eq!(mounts[1].mount_point, Path::new("/mnt/with blank"));
        assert_eq!((&*mounts[1].file_system, &*mounts[1].source), ("btrfs", "/dev/loop2"));
    }

    #[test]
    fn what_is_read_only_above_or_below_is_read_only() {
        let options = |own: &str, below: &str| {
            let line = format!("1 0 8:1 / / {own} - ext4 /dev/sda1 {below}");
            parse(&line).remove(0).options.join(",")
        };
        assert_eq!(options("ro,relatime", "rw,discard"), "ro,relatime,discard");
        assert_eq!(options("rw,relatime", "ro,discard"), "ro,relatime,discard");
        assert_eq!(options("rw,relatime", "rw,relatime"), "rw,relatime");
    }

    #[test]
    fn the_number_decides_and_without_it_the_longest_mount_point() {
        let mounts = parse(TABLE);
        let found = |path: &str, id| of_path(&mounts, Path::new(path), id).unwrap().id;
        assert_eq!(found("/mnt/with blank/x", None), 44);
        assert_eq!(found("/mnt/with", None), 45);
        assert_eq!(found("/var", None), 27);
        assert_eq!(found("/var", Some(45)), 45);
        assert_eq!(found("/var", Some(99)), 27);
    }

    proptest! {
        #[test]
        fn any_text_parses(text in "[ -~\\n]{0,200}") {
            parse(&text);
        }

        #[test]
        fn any_line_with_the_mark_in_it_parses(a in "[ 0-9a-z\\\\:/,]{0,40}", b in "[ a-z\\\\]{0,20}") {
            parse(&format!("{a} - {b}"));
        }
    }
}
