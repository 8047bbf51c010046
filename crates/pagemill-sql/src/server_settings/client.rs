//! What a client set, as one text: an argument of the functions that tell it, so that it goes wherever their calls go.
//!
//! Invariant: a text is read as what it was made of.

use super::{ServerSettings, fact};
use crate::catalog::Catalog;
use crate::error::Result;
use crate::session::SettingValues;

/// Those of a client's settings that are not what they are for everybody.
pub(crate) fn changed(catalog: &Catalog, client: &SettingValues) -> Result<SettingValues> {
    let none = SettingValues::new();
    let server = ServerSettings::new(catalog, &none);
    let major = catalog.database().cluster().version().major();
    let mut changed = SettingValues::new();
    for (name, value) in client {
        let is_same = match fact(major, name) {
            Some(fact) => server.value(fact)?.plain == fact.plain(value),
            None => !name.contains('.'),
        };
        if !is_same {
            changed.insert(name.clone(), value.clone());
        }
    }
    Ok(changed)
}

/// A line to each, with a name and a value.
pub(crate) fn encoded(settings: &SettingValues) -> String {
    let line = |(name, value): (&String, &String)| {
        format!("{name}={}\n", value.replace('\\', "\\\\").replace('\n', "\\n"))
    };
    settings.iter().map(line).collect()
}

/// The settings of such a text.
pub(crate) fn decoded(text: &str) -> SettingValues {
    let entries = text.split('\n').filter_map(|line| line.split_once('='));
    entries.map(|(name, value)| (name.to_owned(), unescaped(value))).collect()
}

fn unescaped(value: &str) -> String {
    let mut chars = value.chars();
    let mut out = String::with_capacity(value.len());
    while let Some(next) = chars.next() {
        out.extend(match next {
            '\\' => chars.next().map(|escaped| if escaped == 'n' { '\n' } else { escaped }),
            other => Some(other),
        });
    }
    out
}
