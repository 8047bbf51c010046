//! Advice: the settings of PostgreSQL 14 to 18 that the figures of a run imply, each with its evidence.
//!
//! ```text
//! Results ─► Sight (what may be believed of them) ─► a rule for each setting ─► Advice ─► text, conf, SQL, JSON
//! ```
//!
//! Invariants: a setting changes only where the whole interval of a measured factor clears a threshold that the rule
//! names (`run_figures::GAIN`); what was not measured stays at its default and says so; values are numbers and words of
//! our own, never texts from the results, so that no results can put a line into a server's configuration.

mod concurrency;
mod conf;
mod files;
mod ladder;
mod reads;
mod run_figures;
mod setting_values;
mod settings;
mod sql;
mod text;
mod version;
mod wal;

#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::report;
use crate::results::{Results, WarningKind};
use crate::statistics::Summary;

pub use conf::conf;
pub use setting_values::SettingValues;
pub use sql::sql;
pub use text::text;
pub use version::Version;

use run_figures::RunFigures;
use settings::{Known, Presence, SETTINGS};

/// What a run says about the settings of one version.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The version it is for.
    pub pg_version: Version,
    /// The version of pagemill that measured.
    pub pagemill: String,
    /// When the run began: RFC 3339, in UTC.
    pub measured: String,
    /// It was a short run with small files.
    pub quick: bool,
    /// What concerns all of it.
    pub cautions: Vec<String>,
    /// One for each setting that the version has, and for the device.
    pub settings: Vec<Setting>,
}

/// What is said of one setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// As PostgreSQL, or sysfs, calls it.
    pub name: &'static str,
    /// Where it is set.
    pub scope: Scope,
    /// What it is without being set; for the device, what it is now.
    pub default: String,
    /// The values that the version takes; `None` for the device.
    pub takes: Option<SettingValues>,
    /// What to do.
    pub decision: Decision,
    /// The value to set; `None` to leave the default.
    pub value: Option<String>,
    /// What makes a change of it take effect.
    pub takes_effect: TakesEffect,
    /// Only servers of which this is true take the value; none for all of the version.
    pub only_where: Option<String>,
    /// Why, in a sentence or two.
    pub why: String,
    /// The figures it rests on.
    pub evidence: Vec<Evidence>,
    /// What stands against it.
    pub cautions: Vec<String>,
}

/// Where a setting is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// In the server's configuration.
    Server,
    /// At the block device, by root.
    Device,
}

/// What to do about a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Set it.
    Change,
    /// It was looked at, and nothing speaks against the default.
    LeaveDefault,
    /// Nothing is known here: leave the default.
    NotMeasured,
}

/// What makes a change take effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TakesEffect {
    /// A start of the server.
    Restart,
    /// The server reads its configuration again.
    Reload,
    /// At once, and until the machine starts anew.
    AtOnce,
}

/// A figure that advice rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// As `experiment/group`.
    pub group: String,
    /// The cell.
    pub cell: String,
    /// The cell it is held against, turn by turn; `None` where the figure is its own.
    pub against: Option<String>,
    /// What the figure is.
    pub measure: Measure,
    /// Median and interval.
    pub figure: Summary,
}

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// How many times as good the cell is as the one it is held against.
    Factor,
    /// Operations per second.
    PerSecond,
    /// Bytes per second.
    BytesPerSecond,
}

/// What a rule says.
#[derive(Debug, Clone, Default, PartialEq)]
struct Ruling {
    /// The value that the figures imply, also where it is the default; `None` for the default.
    value: Option<String>,
    measured: bool,
    why: String,
    evidence: Vec<Evidence>,
    cautions: Vec<String>,
    only_where: Option<String>,
}

impl Ruling {
    /// Nothing is known.
    fn not_measured(why: impl Into<String>) -> Self {
        Self { why: why.into(), ..Self::default() }
    }

    /// Nothing speaks against the default.
    fn keep(why: impl Into<String>) -> Self {
        Self { measured: true, why: why.into(), ..Self::default() }
    }

    fn set(value: impl Into<String>, why: impl Into<String>) -> Self {
        Self { value: Some(value.into()), ..Self::keep(why) }
    }

    fn evidence(mut self, more: impl IntoIterator<Item = Evidence>) -> Self {
        for each in more {
            if !self.evidence.contains(&each) {
                self.evidence.push(each);
            }
        }
        self
    }

    fn caution(mut self, caution: impl Into<String>) -> Self {
        self.cautions.push(caution.into());
        self
    }

    fn only_where(mut self, condition: impl Into<String>) -> Self {
        self.only_where = Some(condition.into());
        self
    }
}

/// What these results say about the settings of that version.
pub fn advise(results: &Results, version: Version) -> Advice {
    let run_figures = RunFigures::new(results);
    Advice {
        pg_version: version,
        pagemill: report::printable(&results.pagemill),
        measured: report::printable(&results.started),
        quick: results.quick,
        cautions: cautions(results),
        settings: SETTINGS
            .iter()
            .filter_map(|known| setting(known, &run_figures, version))
            .collect(),
    }
}

/// The advice as indented JSON with a line feed at its end.
///
/// # Errors
/// None that figures could cause: what is no number becomes `null`.
pub fn json(advice: &Advice) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(advice)? + "\n")
}

fn setting(known: &Known, run_figures: &RunFigures<'_>, version: Version) -> Option<Setting> {
    let presence = known.presence(version);
    if presence == Presence::Absent {
        return None;
    }
    let mut ruling = (known.rule)(run_figures, version);
    let default = known.default(version, run_figures);
    let value = ruling.value.take().filter(|value| *value != default);
    let decision = match (&value, ruling.measured) {
        (Some(_), _) => Decision::Change,
        (None, true) => Decision::LeaveDefault,
        (None, false) => Decision::NotMeasured,
    };
    let since = match presence {
        Presence::Since(minor) => Some(format!("PostgreSQL {}.{minor} or later", version.major())),
        _ => None,
    };
    let doubts = run_figures.doubts(&ruling.evidence);
    Some(Setting {
        name: known.name,
        scope: known.scope,
        default,
        takes: known.takes(version),
        decision,
        only_where: ruling.only_where.or(since).filter(|_| value.is_some()),
        value,
        takes_effect: known.takes_effect,
        why: ruling.why,
        evidence: ruling.evidence,
        cautions: ruling.cautions.into_iter().chain(doubts).collect(),
    })
}

/// What concerns a run as a whole.
fn cautions(results: &Results) -> Vec<String> {
    let mut cautions = Vec::new();
    if results.quick {
        cautions.push(
            "a quick run: six rounds on small files, which a cache below may hold; a full run says more".into(),
        );
    }
    if let Some(why) = &results.interrupted {
        cautions.push(format!("the run ended early: {}", report::printable(why)));
    }
    let whole_run = results.warnings.iter().filter(|warning| {
        warning.group.is_none()
            && matches!(warning.kind, WarningKind::BusyMachine | WarningKind::FileSystem)
    });
    let limits = results.warnings.iter().filter(|warning| warning.kind == WarningKind::Limited);
    cautions.extend(limits.map(|warning| {
        let group = warning.group.as_deref().unwrap_or_default();
        report::printable(&format!("{group}: {}", warning.message))
    }));
    cautions.extend(whole_run.map(|warning| report::printable(&warning.message)));
    cautions
}
