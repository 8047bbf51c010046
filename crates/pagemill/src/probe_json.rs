//! The report of `probe` as JSON.
//!
//! Invariant: names are in snake_case, end with their unit where they have one, and stay: programs
//! compare them. What is not known is null, and never left out.

use pagemill_io::device::{Device, DeviceDescription, DeviceKind};
use pagemill_io::probe::{Fact, Finding, Group, Limits, Report, TriedOn};
use serde_json::{Map, Value, json};

/// The whole report.
pub(crate) fn report(report: &Report) -> Value {
    json!({
        "directory": report.directory.to_string_lossy(),
        "kernel": report.kernel,
        "architecture": std::env::consts::ARCH,
        "tried_on": tried_on(&report.tried_on),
        "place": place(&report.place),
        "calls": named(&report.groups, |group| (group.name, calls(group))),
        "limits": limits(&report.limits),
    })
}

fn named<T>(items: &[T], pair: impl Fn(&T) -> (&'static str, Value)) -> Value {
    let pairs = items.iter().map(|item| {
        let (name, value) = pair(item);
        (name.to_owned(), value)
    });
    Value::Object(pairs.collect())
}

fn tried_on(tried_on: &TriedOn) -> Value {
    match tried_on {
        TriedOn::OwnFile => json!({ "kind": "own_file", "path": null, "why": null }),
        TriedOn::ExistingFile { path, why } => {
            json!({ "kind": "existing_file", "path": path.to_string_lossy(), "why": why })
        }
        TriedOn::Nothing { why } => json!({ "kind": "nothing", "path": null, "why": why }),
    }
}

fn place(place: &DeviceDescription) -> Value {
    json!({
        "file_system": place.file_system,
        "source": place.source,
        "mount_point": place.mount_point.to_string_lossy(),
        "mount_options": place.mount_options,
        "read_ahead_kb": place.read_ahead_kb,
        "data_profiles": place.data_profiles,
        "read_policy": place.read_policy,
        "mirrors": place.mirrors,
        "devices": place.devices.iter().map(device).collect::<Vec<_>>(),
        "note": place.note,
    })
}

fn device(found: &Device) -> Value {
    let mut object = kind(&found.kind);
    let shared = json!({
        "name": found.name,
        "size_bytes": found.size_bytes,
        "rotational": found.rotational,
        "read_ahead_kb": found.read_ahead_kb,
        "scheduler": found.scheduler,
        "logical_block_size": found.logical_block_size,
        "physical_block_size": found.physical_block_size,
        "nr_requests": found.nr_requests,
        "io_poll": found.polled,
        "members": found.members.iter().map(device).collect::<Vec<_>>(),
    });
    if let Value::Object(shared) = shared {
        object.extend(shared);
    }
    Value::Object(object)
}

fn kind(kind: &DeviceKind) -> Map<String, Value> {
    let value = match kind {
        DeviceKind::Partition { disk } => json!({ "kind": "partition", "disk": disk }),
        DeviceKind::Loop { backing_file } => {
            json!({ "kind": "loop", "backing_file": backing_file.to_string_lossy() })
        }
        DeviceKind::DeviceMapper { mapping } => {
            json!({ "kind": "device_mapper", "mapping": mapping })
        }
        DeviceKind::Md { level, raid_disks, copies } => {
            json!({ "kind": "md", "level": level, "raid_disks": raid_disks, "copies": copies })
        }
        _ => json!({ "kind": "disk" }),
    };
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn calls(group: &Group) -> Value {
    named(&group.findings, |finding| (finding.name, call(finding)))
}

fn call(finding: &Finding) -> Value {
    let mut object = Map::new();
    object.insert("state".into(), json!(finding.state.name()));
    object.insert("detail".into(), json!(finding.detail));
    object.insert("errno".into(), json!(finding.errno));
    object.insert("remedy".into(), json!(finding.remedy));
    object.extend(finding.facts.iter().map(|&(name, fact)| (name.to_owned(), value(fact))));
    Value::Object(object)
}

fn value(fact: Fact) -> Value {
    match fact {
        Fact::Number(number) => json!(number),
        Fact::Offered(offered) => json!(offered),
    }
}

fn limits(limits: &Limits) -> Value {
    json!({
        "memory_cgroup_bytes": limits.memory_cgroup_bytes,
        "memory_cgroup_file":
            limits.memory_cgroup_file.as_ref().map(|file| file.to_string_lossy()),
        "memory_bytes": limits.memory_bytes,
        "rlimit_nofile_soft": limits.nofile.0,
        "rlimit_nofile_hard": limits.nofile.1,
        "rlimit_memlock_soft_bytes": limits.memlock.0,
        "rlimit_memlock_hard_bytes": limits.memlock.1,
        "page_size_bytes": limits.page_size_bytes,
        "transparent_hugepage": limits.transparent_hugepage,
    })
}
