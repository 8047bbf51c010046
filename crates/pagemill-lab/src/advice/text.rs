//! Advice for people: a table of the settings, then for each why, its evidence, and what stands against it.
//!
//! Invariant: no text from the results breaks a line: each goes through `printable`.

use std::fmt;

use crate::advice::{Advice, Decision, Evidence, Measure, Scope, Setting, TakesEffect};
use crate::report::{Align, Line, paragraph, printable, table};

const HEADER: [(&str, Align); 4] = [
    ("Setting", Align::Left),
    ("Default", Align::Left),
    ("Advice", Align::Left),
    ("SettingValues effect", Align::Left),
];

/// The advice as a person reads it.
pub fn text(advice: &Advice) -> String {
    let mut text = paragraph(&heading(advice), 0, 2);
    for caution in &advice.cautions {
        text += &paragraph(&format!("Caution: {caution}."), 0, 2);
    }
    let rows: Vec<Line> = advice.settings.iter().map(row).collect();
    text.push('\n');
    text += &table(&HEADER, &rows, 0);
    for setting in &advice.settings {
        text.push('\n');
        text += &paragraph(&title(setting), 0, 2);
        for note in notes(setting) {
            text += &paragraph(&note, 2, 4);
        }
    }
    text
}

/// What this is, and where from.
pub(super) fn heading(advice: &Advice) -> String {
    format!(
        "Advice of pagemill for PostgreSQL {}, from a {} begun {} by pagemill {}.",
        advice.pg_version,
        if advice.quick { "quick run" } else { "run" },
        if advice.measured.is_empty() { "at an unknown time" } else { &advice.measured },
        if advice.pagemill.is_empty() { "of an unknown version" } else { &advice.pagemill },
    )
}

/// Everything that is to be said of a setting besides its value.
pub(super) fn notes(setting: &Setting) -> Vec<String> {
    let mut notes = vec![format!("{}.", sentence(&setting.why))];
    notes.extend(setting.evidence.iter().map(Evidence::to_string));
    notes.extend(setting.only_where.iter().map(|condition| format!("only where: {condition}")));
    notes.extend(setting.cautions.iter().map(|caution| format!("caution: {caution}")));
    notes.extend(device_command(setting).map(|command| format!("as root: {command}")));
    notes
}

/// How the device's readahead is set, which is counted in sectors of 512 bytes there.
pub(super) fn device_command(setting: &Setting) -> Option<String> {
    let kilobytes: u64 = setting.value.as_ref()?.parse().ok()?;
    let sectors = kilobytes.checked_mul(2)?;
    (setting.scope == Scope::Device).then(|| format!("blockdev --setra {sectors} /dev/DEVICE"))
}

fn row(setting: &Setting) -> Line {
    let advice = match (&setting.value, setting.decision) {
        (Some(value), _) if setting.only_where.is_some() => format!("{value}, see below"),
        (Some(value), _) => value.clone(),
        (None, Decision::NotMeasured) => format!("{}: not measured", leave(setting)),
        (None, _) => leave(setting).into(),
    };
    let when = if setting.value.is_some() { takes_effect(setting.takes_effect) } else { "" };
    Line::Fields(vec![setting.name.into(), setting.default.clone(), advice, when.into()])
}

/// A device has no default, but what it is set to now.
fn leave(setting: &Setting) -> &'static str {
    if setting.scope == Scope::Device { "leave it" } else { "leave the default" }
}

pub(super) fn takes_effect(when: TakesEffect) -> &'static str {
    match when {
        TakesEffect::Restart => "restart",
        TakesEffect::Reload => "reload",
        TakesEffect::AtOnce => "at once, until the next boot",
    }
}

fn title(setting: &Setting) -> String {
    let Setting { name, default, .. } = setting;
    match (&setting.value, setting.scope) {
        (Some(value), Scope::Server) => format!("{name}: {value} (default {default})"),
        (Some(value), Scope::Device) => format!("{name}: {value} (now {default})"),
        (None, _) => format!("{name}: {} ({default})", leave(setting)),
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    // Names of methods stay as they are.
    let is_name =
        text.split(' ').next().is_some_and(|word| word.contains('_') || word.contains("sync"));
    match first {
        Some(first) if !is_name => first + letters.as_str(),
        _ => text.to_owned(),
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: f64| match self.measure {
            Measure::Factor => format!("{value:.2}"),
            Measure::PerSecond => format!("{value:.0}"),
            Measure::BytesPerSecond => format!("{:.1}", value / 1e6),
        };
        let (median, low, high) =
            (shown(self.figure.median), shown(self.figure.low), shown(self.figure.high));
        let cell = printable(&self.cell);
        write!(f, "{}: ", printable(&self.group))?;
        match (&self.against, self.measure) {
            (Some(other), _) => {
                write!(f, "{cell} is {median} times as fast as {}", printable(other))?
            }
            (None, Measure::BytesPerSecond) => write!(f, "{cell}: {median} MB/s")?,
            (None, _) => write!(f, "{cell}: {median} per second")?,
        }
        let confidence = self.figure.coverage * 100.0;
        write!(f, " ({low} to {high}, {confidence:.0} % confidence, {} turns)", self.figure.samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_large_unless_a_name_does() {
        assert_eq!(sentence("the unit"), "The unit");
        assert_eq!(sentence("io_uring was not seen"), "io_uring was not seen");
        assert_eq!(sentence("fdatasync lasts"), "fdatasync lasts");
        assert_eq!(sentence(""), "");
    }
}
