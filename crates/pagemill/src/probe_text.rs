//! The report of `probe` for people: where it was tried, the place, the calls, the limits.
//!
//! Invariant: what does not work has its reason on its line, and its remedy, if there is one, on the
//! line below.

use pagemill_io::device::{Device, DeviceDescription, DeviceKind};
use pagemill_io::probe::{Finding, Limits, Report, State, TriedOn};

use crate::text_table::{Align, fields, pretty_size, printable, table};

/// Characters of a line in the column of what was seen.
const WIDEST: usize = 80;

/// Shown where there is nothing to show.
const NONE: &str = "-";

/// The whole report.
pub(crate) fn report(report: &Report) -> String {
    let mut parts = vec![heading(report), place(&report.place)];
    if !report.place.devices.is_empty() {
        parts.push(devices(&report.place.devices));
    }
    if !report.groups.is_empty() {
        parts.push(calls(report));
    }
    parts.push(limits(&report.limits));
    parts.join("\n")
}

fn shown(text: &std::ffi::OsStr) -> String {
    printable(text.as_encoded_bytes())
}

fn heading(report: &Report) -> String {
    let tried_on = match &report.tried_on {
        TriedOn::OwnFile => "anonymous files of 1 MiB, gone now".to_owned(),
        TriedOn::ExistingFile { path, why } => {
            format!("{}, only read: no file can be made here: {why}", shown(path.as_os_str()))
        }
        TriedOn::Nothing { why } => {
            format!("nothing: there is no file to read, and none can be made here: {why}")
        }
    };
    fields(&[
        ("Directory", shown(report.directory.as_os_str())),
        ("Kernel", format!("Linux {}, {}", report.kernel, std::env::consts::ARCH)),
        ("Tried on", tried_on),
    ])
}

fn place(place: &DeviceDescription) -> String {
    let mount = format!(
        "{}, mounted at {} from {}",
        place.file_system,
        shown(place.mount_point.as_os_str()),
        printable(place.source.as_bytes())
    );
    let mut lines = vec![
        ("File system", mount),
        ("Mount options", printable(place.mount_options.join(",").as_bytes())),
        ("Readahead", kilobytes(place.read_ahead_kb)),
        ("Mirrors", mirrors(place)),
    ];
    if let Some(note) = &place.note {
        lines.push(("Note", note.clone()));
    }
    fields(&lines)
}

fn mirrors(place: &DeviceDescription) -> String {
    let mut text = match place.mirrors {
        0 | 1 => "none known".to_owned(),
        copies => format!("each block on {copies} devices"),
    };
    if !place.data_profiles.is_empty() {
        text.push_str(&format!(", data profile {}", place.data_profiles.join(" and ")));
    }
    if let Some(policy) = place.read_policy.as_ref().filter(|_| place.mirrors > 1) {
        text.push_str(&format!(", read policy {policy}"));
        if policy == "pid" {
            text.push_str(": each process reads from one device only");
        }
    }
    text
}

fn kilobytes(number: Option<u64>) -> String {
    number.map_or_else(|| NONE.to_owned(), |number| format!("{number} kB"))
}

fn devices(devices: &[Device]) -> String {
    let header = [
        ("Device", Align::Left),
        ("Kind", Align::Left),
        ("Size", Align::Right),
        ("Rotational", Align::Left),
        ("Readahead", Align::Right),
        ("Scheduler", Align::Left),
        ("Block size", Align::Right),
        ("Requests", Align::Right),
    ];
    let mut rows = Vec::new();
    for device in devices {
        add_device(device, 0, &mut rows);
    }
    table(&header, &rows)
}

fn add_device(device: &Device, depth: usize, rows: &mut Vec<Vec<String>>) {
    let number = |number: Option<u64>| number.map_or(NONE.to_owned(), |number| number.to_string());
    let sizes = (number(device.logical_block_size), number(device.physical_block_size));
    let rotational = device.rotational.map(|yes| if yes { "yes" } else { "no" });
    rows.push(vec![
        format!("{}{}", "  ".repeat(depth), printable(device.name.as_bytes())),
        printable(kind(&device.kind).as_bytes()),
        device.size_bytes.map_or(NONE.to_owned(), pretty_size),
        rotational.unwrap_or(NONE).to_owned(),
        kilobytes(device.read_ahead_kb),
        device.scheduler.clone().unwrap_or_else(|| NONE.to_owned()),
        format!("{}/{}", sizes.0, sizes.1),
        number(device.nr_requests),
    ]);
    for member in &device.members {
        add_device(member, depth + 1, rows);
    }
}

fn kind(kind: &DeviceKind) -> String {
    match kind {
        DeviceKind::Partition { disk } => format!("partition of {disk}"),
        DeviceKind::Loop { backing_file } => format!("loop on {}", backing_file.display()),
        DeviceKind::DeviceMapper { mapping } => format!("mapping {mapping}"),
        DeviceKind::Md { level, raid_disks, .. } => format!("{level} of {raid_disks}"),
        _ => "disk".to_owned(),
    }
}

fn calls(report: &Report) -> String {
    let header = [("Call", Align::Left), ("Here", Align::Left), ("What was seen", Align::Left)];
    let mut rows = Vec::new();
    for group in &report.groups {
        rows.push(vec![group.title.to_owned()]);
        for finding in &group.findings {
            add_call(finding, &mut rows);
        }
    }
    table(&header, &rows)
}

fn add_call(finding: &Finding, rows: &mut Vec<Vec<String>>) {
    let mut cells = (format!("  {}", finding.label), word(finding.state).to_owned());
    let remedy = finding.remedy.iter().map(|remedy| format!("remedy: {remedy}"));
    for text in std::iter::once(printable(finding.detail.as_bytes())).chain(remedy) {
        for line in folded(&text) {
            let (label, state) = std::mem::take(&mut cells);
            rows.push(vec![label, state, line]);
        }
    }
}

/// The text in lines of at most [`WIDEST`] characters, broken at blanks; a longer word stays whole.
fn folded(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDEST => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn word(state: State) -> &'static str {
    match state {
        State::Works => "yes",
        State::Accepted => "accepted",
        State::NoEffect => "no effect",
        State::Emulated => "emulated",
        State::Missing => "no",
        State::Untried => "not tried",
    }
}

fn limits(limits: &Limits) -> String {
    let size = |bytes: Option<u64>| bytes.map_or("unlimited".to_owned(), pretty_size);
    let count = |count: Option<u64>| count.map_or("unlimited".to_owned(), |n| n.to_string());
    let memory = match (limits.memory_cgroup_bytes, &limits.memory_cgroup_file) {
        (Some(bytes), Some(file)) => {
            format!("{} by {}", pretty_size(bytes), shown(file.as_os_str()))
        }
        _ => "not limited".to_owned(),
    };
    fields(&[
        ("Memory", limits.memory_bytes.map_or(NONE.to_owned(), pretty_size)),
        ("Memory of the control group", memory),
        ("RLIMIT_NOFILE", both(limits.nofile, count)),
        ("RLIMIT_MEMLOCK", both(limits.memlock, size)),
        ("Machine page", pretty_size(limits.page_size_bytes)),
        ("Transparent huge pages", limits.transparent_hugepage.clone().unwrap_or(NONE.to_owned())),
    ])
}

/// Soft and hard limit; once, where they are the same.
fn both(limit: (Option<u64>, Option<u64>), text: impl Fn(Option<u64>) -> String) -> String {
    match limit {
        (soft, hard) if soft == hard => text(soft),
        (soft, hard) => format!("{} (can be raised to {})", text(soft), text(hard)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_no_has_its_reason_beside_it_and_its_remedy_below() {
        let finding = Finding {
            name: "io_uring",
            label: "io_uring",
            state: State::Missing,
            detail: "EPERM: sysctl kernel.io_uring_disabled=2 forbids it to everybody".into(),
            errno: Some("EPERM".into()),
            remedy: Some("set it to 0".into()),
            facts: Vec::new(),
        };
        let mut rows = Vec::new();
        add_call(&finding, &mut rows);
        let header = [("", Align::Left), ("", Align::Left), ("", Align::Left)];
        let text = table(&header, &rows);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "  io_uring  no  EPERM: sysctl kernel.io_uring_disabled=2 forbids it to everybody",
                "                remedy: set it to 0",
            ]
        );
    }

    #[test]
    fn a_long_text_is_folded_at_blanks_and_loses_none_of_its_words() {
        let text = "single_mmap, nodrop, submit_stable, ".repeat(9);
        let lines = folded(&text);
        assert!(lines.len() > 3 && lines.iter().all(|line| line.len() <= WIDEST), "{lines:?}");
        assert_eq!(lines.join(" "), text);
        assert_eq!(folded(&"x".repeat(99)), ["x".repeat(99)]);
    }

    #[test]
    fn limits_are_told_once_where_they_cannot_be_raised() {
        let count = |count: Option<u64>| count.map_or("unlimited".to_owned(), |n| n.to_string());
        assert_eq!(both((Some(7), Some(7)), count), "7");
        assert_eq!(both((Some(7), None), count), "7 (can be raised to unlimited)");
    }
}
