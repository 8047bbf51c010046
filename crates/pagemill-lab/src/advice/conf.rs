//! Advice as a piece of postgresql.conf: to be appended to it, or included.
//!
//! Invariants: every line is a comment, empty, or sets a setting that every server of the version has to a value that every
//! such server takes; what only some take is a comment that says which.

use crate::advice::text::{device_command, heading, notes, takes_effect};
use crate::advice::{Advice, Decision, Scope, Setting};
use crate::report::paragraph;

/// The advice as lines of postgresql.conf.
pub fn conf(advice: &Advice) -> String {
    let mut text = commented("# ", &heading(advice));
    for caution in &advice.cautions {
        text += &commented("# ", &format!("Caution: {caution}."));
    }
    for setting in changed(advice) {
        text.push('\n');
        text += &remarks("# ", setting);
        text += &line(setting);
    }
    text + &left("# ", advice)
}

fn line(setting: &Setting) -> String {
    let (name, value) = (setting.name, setting.value.as_deref().unwrap_or_default());
    if setting.scope == Scope::Device {
        let command = device_command(setting).unwrap_or_default();
        return format!("# {}, not a setting of the server: {command}\n", setting.name);
    }
    let mark = if setting.only_where.is_some() { "#" } else { "" };
    format!(
        "{mark}{name} = {value}  # default {}, {}\n",
        setting.default,
        takes_effect(setting.takes_effect)
    )
}

/// The settings that are to be changed.
pub(super) fn changed(advice: &Advice) -> impl Iterator<Item = &Setting> {
    advice.settings.iter().filter(|setting| setting.decision == Decision::Change)
}

/// Why a setting is to be changed, as comments.
pub(super) fn remarks(mark: &str, setting: &Setting) -> String {
    let notes = notes(setting).into_iter().filter(|note| !note.starts_with("as root: "));
    notes.map(|note| commented(mark, &note)).collect()
}

/// The settings that are left, as comments.
pub(super) fn left(mark: &str, advice: &Advice) -> String {
    let with = |decision| {
        let is_left = move |setting: &&Setting| {
            setting.decision == decision && setting.scope == Scope::Server
        };
        let settings = advice.settings.iter().filter(is_left);
        settings.map(|setting| setting.name).collect::<Vec<_>>().join(", ")
    };
    let mut text = String::new();
    let rows = [
        ("Left at its default, looked at", Decision::LeaveDefault),
        ("Left at its default, not measured", Decision::NotMeasured),
    ];
    for (title, decision) in rows {
        let names = with(decision);
        if !names.is_empty() {
            text += &format!("\n{}", commented(mark, &format!("{title}: {names}.")));
        }
    }
    for setting in advice.settings.iter().filter(|setting| setting.scope == Scope::Device) {
        let Setting { name, default, decision, .. } = setting;
        let seen = match decision {
            Decision::Change => continue,
            Decision::LeaveDefault => "looked at",
            Decision::NotMeasured => "not measured",
        };
        let left = format!("Of the device, left as it is ({default}), {seen}: {name}.");
        text += &format!("\n{}", commented(mark, &left));
    }
    text
}

/// A text as lines of comment.
pub(super) fn commented(mark: &str, text: &str) -> String {
    paragraph(text, 0, 2).lines().map(|line| format!("{mark}{line}\n")).collect()
}
