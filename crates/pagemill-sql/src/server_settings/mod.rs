//! The settings that a server of the cluster's version has: what they are, and what each would be on it.
//!
//! Invariants: a setting is there for the versions that have it and for no others; a value follows from the files, from the
//! cluster itself, from what a client set, or is what a server begins with, and none is made up. Names are compared without case.
//! What only a server that runs can tell is what it begins with.
//!
//! `settings.tsv` has a line for each setting, several where versions differ; `\N` stands for nothing.
//!
//! Source: `src/backend/utils/misc/guc_tables.c` (`guc.c` until 15), PostgreSQL 14 to 18.

mod client;
mod known;
mod spelled;
#[cfg(test)]
mod tests;
mod units;
mod values;

use std::sync::LazyLock;

pub(crate) use client::{changed, decoded, encoded};
pub(crate) use values::{ServerSettings, SettingValue};

const TABLE: &str = include_str!("settings.tsv");
const NOTHING: &str = "\\N";

/// Settings that only superusers see, and who may read all.
///
/// Source: `GUC_SUPERUSER_ONLY` in `src/backend/utils/misc/guc_tables.c` (`guc.c` until 15), PostgreSQL 14 to 18.
const FOR_SUPERUSERS: [&str; 27] = [
    "config_file",
    "data_directory",
    "dynamic_library_path",
    "extension_control_path",
    "extension_destdir",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "jit_provider",
    "krb_server_keyfile",
    "log_directory",
    "log_filename",
    "oauth_validator_libraries",
    "output_plugin_libraries",
    "primary_conninfo",
    "session_preload_libraries",
    "shared_preload_libraries",
    "ssl_ciphers",
    "ssl_dh_params_file",
    "ssl_ecdh_curve",
    "ssl_groups",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "ssl_passphrase_command",
    "ssl_tls13_ciphers",
    "stats_temp_directory",
    "unix_socket_directories",
];

/// A setting, as versions have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    first: u32,
    last: u32,
    /// Who may change it, and when.
    pub(crate) context: &'static str,
    pub(crate) kind: Kind,
    pub(crate) unit: Option<&'static str>,
    pub(crate) least: Option<&'static str>,
    pub(crate) most: Option<&'static str>,
    /// What it can be, as the text of an array.
    pub(crate) words: Option<&'static str>,
    /// What it is where nobody says anything.
    pub(crate) boot: Option<&'static str>,
    /// Where it belongs; none for one that is left out of lists of all.
    pub(crate) category: Option<&'static str>,
}

/// What values a setting has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Integer,
    Real,
    Enum,
    String,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Bool, Self::Integer, Self::Real, Self::Enum, Self::String];

    /// As the view spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Integer => "integer",
            Self::Real => "real",
            Self::Enum => "enum",
            Self::String => "string",
        }
    }
}

impl Fact {
    fn of_line(line: &'static str) -> Option<Self> {
        let mut fields = line.split('\t');
        let (name, first, last) = (fields.next()?, fields.next()?, fields.next()?);
        let (context, kind) = (fields.next()?, fields.next()?);
        let mut other = || fields.next().filter(|field| *field != NOTHING);
        Some(Self {
            name,
            first: first.parse().ok()?,
            last: last.parse().ok()?,
            context,
            kind: Kind::ALL.into_iter().find(|known| known.name() == kind)?,
            unit: other(),
            least: other(),
            most: other(),
            words: other(),
            boot: other(),
            category: other(),
        })
    }

    fn is_of(&self, major: u32) -> bool {
        (self.first..=self.last).contains(&major)
    }

    /// True for one that may tell what is kept from others: where files are, how to connect elsewhere.
    fn is_for_superusers(&self) -> bool {
        FOR_SUPERUSERS.contains(&self.name)
    }

    /// True for one that nothing but the server itself changes.
    fn is_internal(&self) -> bool {
        self.context == "internal"
    }
}

static FACTS: LazyLock<Vec<Fact>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(Fact::of_line).collect()
});

/// The settings of a version that lists of all have, in their order.
pub(crate) fn listed(major: u32) -> impl Iterator<Item = &'static Fact> {
    FACTS.iter().filter(move |fact| fact.is_of(major) && fact.category.is_some())
}

/// A setting of a version by its name, also an old one.
pub(crate) fn fact(major: u32, name: &str) -> Option<&'static Fact> {
    let is = |wanted: &str| {
        FACTS.iter().find(|fact| fact.name.eq_ignore_ascii_case(wanted) && fact.is_of(major))
    };
    is(name).or_else(|| is(renamed(name)?))
}

/// The name that a setting has now.
///
/// Source: `map_old_guc_names` in `src/backend/utils/misc/guc.c`, PostgreSQL 14 to 18.
fn renamed(name: &str) -> Option<&'static str> {
    const NAMES: [(&str, &str); 3] = [
        ("sort_mem", "work_mem"),
        ("vacuum_mem", "maintenance_work_mem"),
        ("ssl_ecdh_curve", "ssl_groups"),
    ];
    let found = NAMES.into_iter().find(|(old, _)| old.eq_ignore_ascii_case(name));
    found.map(|(_, new)| new)
}
