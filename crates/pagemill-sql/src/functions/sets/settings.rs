//! Rows of `pg_settings` that are the same on every server of a version: sizes that were chosen when it was built, and what nobody
//! changes who reads strings as the standard has them.
//!
//! Invariant: a setting that is not here is refused by its name.
//!
//! Source: the settings of the group PRESET_OPTIONS in `src/backend/utils/misc/guc_tables.c` (`guc.c` until 15), `pg_config_manual.h`,
//! PostgreSQL 14 to 18.

use arrow::array::ArrayRef;
use datafusion::scalar::ScalarValue;

use super::super::keys::strings;
use super::super::rows::Outcome;
use super::{Cells, Series, SetCall, made};
use crate::error::StatementError;

/// What a row has.
pub(super) const COLUMNS: [&str; 17] = [
    "name",
    "setting",
    "unit",
    "category",
    "short_desc",
    "extra_desc",
    "context",
    "vartype",
    "source",
    "min_val",
    "max_val",
    "enumvals",
    "boot_val",
    "reset_val",
    "sourcefile",
    "sourceline",
    "pending_restart",
];

/// A setting that nobody changes.
struct Preset {
    name: &'static str,
    value: &'static str,
    about: &'static str,
    category: &'static str,
    /// Who may change it.
    context: &'static str,
    /// True where it is a number, which is its least and its largest value.
    is_number: bool,
}

const PRESETS: [Preset; 6] = [
    Preset {
        name: "block_size",
        value: "8192",
        about: "Shows the size of a disk block.",
        category: "Preset Options",
        context: "internal",
        is_number: true,
    },
    Preset {
        name: "integer_datetimes",
        value: "on",
        about: "Shows whether datetimes are integer based.",
        category: "Preset Options",
        context: "internal",
        is_number: false,
    },
    Preset {
        name: "max_function_args",
        value: "100",
        about: "Shows the maximum number of function arguments.",
        category: "Preset Options",
        context: "internal",
        is_number: true,
    },
    Preset {
        name: "max_identifier_length",
        value: "63",
        about: "Shows the maximum identifier length.",
        category: "Preset Options",
        context: "internal",
        is_number: true,
    },
    Preset {
        name: "max_index_keys",
        value: "32",
        about: "Shows the maximum number of index keys.",
        category: "Preset Options",
        context: "internal",
        is_number: true,
    },
    Preset {
        name: "standard_conforming_strings",
        value: "on",
        about: "Causes '...' strings to treat backslashes literally.",
        category: "Version and Platform Compatibility / Previous PostgreSQL Versions",
        context: "user",
        is_number: false,
    },
];

pub(super) fn begin(_: &SetCall, arguments: &[ArrayRef], row: usize) -> Outcome<Box<dyn Series>> {
    let names = strings(&arguments[0]).value(row);
    let mut found: Vec<&'static Preset> = Vec::new();
    for name in names.split(',') {
        let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) else {
            return Err(StatementError::unsupported(format!(
                "the setting \"{name}\" in pg_settings"
            )));
        };
        if !found.iter().any(|known| known.name == name) {
            found.push(preset);
        }
    }
    Ok(made(found, put))
}

/// By the places of [`COLUMNS`].
fn put(preset: &'static Preset, out: &mut [Cells]) -> Outcome<()> {
    let bound = preset.is_number.then_some(preset.value);
    let texts = [
        (0, Some(preset.name)),
        (1, Some(preset.value)),
        (2, None),
        (3, Some(preset.category)),
        (4, Some(preset.about)),
        (5, None),
        (6, Some(preset.context)),
        (7, Some(if preset.is_number { "integer" } else { "bool" })),
        (8, Some("default")),
        (9, bound),
        (10, bound),
        (11, None),
        (12, Some(preset.value)),
        (13, Some(preset.value)),
        (14, None),
        (15, None),
    ];
    for (place, text) in texts {
        match text {
            Some(text) => out[place].text(text)?,
            None => out[place].null()?,
        }
    }
    out[16].scalar(ScalarValue::Boolean(Some(false)))
}
