//! Time zones by name, from a directory of compiled zone files.
//!
//! A server finds its zones in the directory it was built for: the system's, as Debian's packages
//! do, or one of its own beside its programs. No cluster says which, so the caller does.
//!
//! Names are compared without case, directory by directory, and hidden files are no zones. A name
//! without a file may be a rule in POSIX's notation (`EST5EDT`); `GMT` never comes from a file.
//! Invariant: a zone is read once, and all threads share it. What cannot be read is no zone, as it
//! is to the server.
//! Source: `pg_tzset` and `pg_open_tzfile` in `src/timezone/pgtz.c`, `check_timezone` in
//! `src/backend/commands/variable.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_io::HostFiles;
use pagemill_types::input::datetime::ZoneLookup;
use pagemill_types::time_zone::Zone;

/// Where Linux systems keep compiled zone files.
pub const SYSTEM_ZONES: &str = "/usr/share/zoneinfo";

/// The longest name of a zone, in bytes.
const MOST_NAME_BYTES: usize = 255;
/// Offsets are less than a week.
const MOST_HOURS: f64 = 168.0;
/// So many directories may be within each other; `MAX_TZDIR_DEPTH` in `src/timezone/pgtz.c`.
const DEEPEST: u32 = 10;
/// No zone file is nearly as large.
const FILE_LIMIT: u64 = 1 << 20;

/// A zone, and its name as the setting `TimeZone` shows it.
#[derive(Debug, Clone)]
pub struct NamedZone {
    /// As the file is spelled, or a rule in capitals.
    pub name: String,
    /// The zone.
    pub zone: Arc<Zone>,
}

/// The zones of one directory.
#[derive(Debug)]
pub struct TimeZones {
    host: HostFiles,
    directory: PathBuf,
    /// By name in capitals.
    known: Mutex<HashMap<String, NamedZone>>,
}

impl TimeZones {
    /// The zones in a directory, read when they are asked for.
    pub fn new(host: HostFiles, directory: impl Into<PathBuf>) -> Self {
        Self { host, directory: directory.into(), known: Mutex::default() }
    }

    /// The zone that a value of the setting `TimeZone` means: a name, or hours east of Greenwich.
    /// Nothing for what the server would refuse, and for `INTERVAL '…'`.
    pub fn of_setting(&self, value: &str) -> Option<NamedZone> {
        match value.parse::<f64>() {
            Ok(hours) if hours.abs() < MOST_HOURS => fixed_zone((hours * 3600.0) as i64),
            _ => self.named(value).filter(|found| found.zone.is_acceptable()),
        }
    }

    /// All zones that have a file and may be chosen, by name. What cannot be read is left out, as are files that are no zones.
    pub fn all(&self) -> Vec<(String, Zone)> {
        let mut found = Vec::new();
        self.add_all(&self.directory, DEEPEST, &mut found);
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        found
    }

    fn add_all(&self, directory: &Path, depth: u32, found: &mut Vec<(String, Zone)>) {
        let Ok(entries) = self.host.read_dir(directory) else { return };
        for entry in entries {
            let Some(name) = entry.name.to_str().filter(|name| !name.starts_with('.')) else {
                continue;
            };
            let path = directory.join(name);
            if self.host.is_dir(&path) {
                if depth > 0 {
                    self.add_all(&path, depth - 1, found);
                }
                continue;
            }
            let spelled = path.strip_prefix(&self.directory).ok().and_then(Path::to_str);
            let bytes = self.host.read_file(&path, FILE_LIMIT).ok();
            let zone = bytes.and_then(|bytes| Zone::from_tzif(&bytes).ok());
            let zone = zone.filter(Zone::is_acceptable);
            found.extend(spelled.map(str::to_owned).zip(zone));
        }
    }

    fn named(&self, name: &str) -> Option<NamedZone> {
        if name.len() > MOST_NAME_BYTES {
            return None;
        }
        let name = name.to_ascii_uppercase();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(&name) {
            return Some(found.clone());
        }
        let found = self.read(&name)?;
        known.insert(name, found.clone());
        Some(found)
    }

    /// By its name in capitals.
    fn read(&self, name: &str) -> Option<NamedZone> {
        let named = |name: &str, zone| NamedZone { name: name.to_owned(), zone: Arc::new(zone) };
        if name == "GMT" {
            return Some(named(name, Zone::gmt()));
        }
        let from_file = self.file(name.strip_prefix(':').unwrap_or(name)).and_then(|path| {
            let bytes = self.host.read_file(&path, FILE_LIMIT).ok()?;
            let spelled = path.strip_prefix(&self.directory).ok()?;
            Some(named(spelled.to_str()?, Zone::from_tzif(&bytes).ok()?))
        });
        from_file.or_else(|| match name.starts_with(':') {
            true => None,
            false => Zone::from_posix(name.as_bytes()).map(|zone| named(name, zone)),
        })
    }

    /// The file of a zone, its name compared without case.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let mut path = self.directory.clone();
        for part in name.split('/') {
            let mut entries = self.host.read_dir(&path).ok()?.into_iter();
            let found = entries.find_map(|entry| {
                let entry = entry.name.into_string().ok()?;
                let is_it = !entry.starts_with('.') && entry.eq_ignore_ascii_case(part);
                is_it.then_some(entry)
            })?;
            path.push(found);
        }
        Some(path)
    }
}

/// The zone that is always so many seconds east of Greenwich.
fn fixed_zone(east: i64) -> Option<NamedZone> {
    let seconds = east.abs();
    let (hours, rest) = (seconds / 3600, seconds % 3600);
    let offset = match (rest / 60, rest % 60) {
        (0, 0) => format!("{hours:02}"),
        (minutes, 0) => format!("{hours:02}:{minutes:02}"),
        (minutes, seconds) => format!("{hours:02}:{minutes:02}:{seconds:02}"),
    };
    let (sign, posix_sign) = if east < 0 { ('-', '+') } else { ('+', '-') };
    let name = format!("<{sign}{offset}>{posix_sign}{offset}");
    let zone = Arc::new(Zone::from_posix(name.as_bytes())?);
    Some(NamedZone { name, zone })
}

impl ZoneLookup for TimeZones {
    fn zone(&self, name: &str) -> Option<Arc<Zone>> {
        self.named(name).map(|found| found.zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones() -> (tempfile::TempDir, TimeZones) {
        let directory = tempfile::tempdir().unwrap();
        let nested = directory.path().join("Sea");
        std::fs::create_dir(&nested).unwrap();
        let mut file = b"TZif2".to_vec();
        file.extend_from_slice(&[0; 15]);
        for count in [0u32, 0, 0, 0, 1, 4] {
            file.extend_from_slice(&count.to_be_bytes());
        }
        let kind = [0, 0, 0x0E, 0x10, 0, 0, b'S', b'E', b'A', 0];
        let whole = [&file[..], &kind, &file, &kind, b"\nSEA-1\n"].concat();
        std::fs::write(nested.join("Bottom"), whole).unwrap();
        std::fs::write(nested.join(".hidden"), "TZif").unwrap();
        std::fs::write(directory.path().join("zone.tab"), "no zone").unwrap();
        let zones = TimeZones::new(HostFiles::real(), directory.path());
        (directory, zones)
    }

    #[test]
    fn names_are_found_in_any_case() {
        let (_directory, zones) = zones();
        for name in ["Sea/Bottom", "sea/bottom", "SEA/BOTTOM"] {
            assert_eq!(zones.zone(name).unwrap().only_offset(), Some(3600), "{name}");
        }
    }

    #[test]
    fn all_zones_are_those_with_a_file_in_sight() {
        let (_directory, zones) = zones();
        let names: Vec<String> = zones.all().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["Sea/Bottom"]);
    }

    #[test]
    fn what_is_no_file_may_be_a_rule() {
        let (_directory, zones) = zones();
        assert_eq!(zones.zone("gmt").unwrap().only_offset(), Some(0));
        assert_eq!(zones.zone("foo5").unwrap().only_offset(), Some(-18_000));
        for name in ["sea", "sea/", "sea/.hidden", "../etc/passwd", "zone.tab", "nowhere", ""] {
            assert!(zones.zone(name).is_none(), "{name}");
        }
    }

    #[test]
    fn the_setting_may_be_hours() {
        let (_directory, zones) = zones();
        assert_eq!(zones.of_setting("-7").unwrap().zone.only_offset(), Some(-25_200));
        let name = |value: &str| zones.of_setting(value).unwrap().name;
        assert_eq!((name("-7"), name("3.5")), ("<-07>+07".into(), "<+03:30>-03:30".into()));
        assert_eq!((name("sea/BOTTOM"), name("est5edt")), ("Sea/Bottom".into(), "EST5EDT".into()));
        assert_eq!(zones.of_setting("5.5").unwrap().zone.only_offset(), Some(19_800));
        assert_eq!(zones.of_setting("Sea/Bottom").unwrap().zone.only_offset(), Some(3600));
        for value in ["nan", "-inf", "168", "Sea", ""] {
            assert!(zones.of_setting(value).is_none(), "{value}");
        }
    }
}
