//! Advice as `ALTER SYSTEM` statements, for psql or any other client.
//!
//! Invariants: every line is a comment, empty, or a whole statement; what only some servers of the version take is a comment
//! that says which. `ALTER SYSTEM` cannot run in a transaction block, so there is none.

use crate::advice::conf::{changed, commented, left, remarks};
use crate::advice::text::{device_command, heading};
use crate::advice::{Advice, Scope, Setting, TakesEffect};

/// The advice as SQL.
pub fn sql(advice: &Advice) -> String {
    let mut text = commented("-- ", &heading(advice));
    for caution in &advice.cautions {
        text += &commented("-- ", &format!("Caution: {caution}."));
    }
    for setting in changed(advice) {
        text.push('\n');
        text += &remarks("-- ", setting);
        text += &statement(setting);
    }
    let set: Vec<&Setting> = changed(advice).filter(|setting| is_set(setting)).collect();
    if !set.is_empty() {
        text += "\nSELECT pg_reload_conf();\n";
    }
    let waits = |setting: &&&Setting| setting.takes_effect == TakesEffect::Restart;
    let restart: Vec<&str> = set.iter().filter(waits).map(|setting| setting.name).collect();
    if !restart.is_empty() {
        text += &commented("-- ", &format!("Needs a restart: {}.", restart.join(", ")));
    }
    text + &left("-- ", advice)
}

fn is_set(setting: &Setting) -> bool {
    setting.scope == Scope::Server && setting.only_where.is_none()
}

fn statement(setting: &Setting) -> String {
    if setting.scope == Scope::Device {
        let command = device_command(setting).unwrap_or_default();
        return format!("-- {}, not a setting of the server: {command}\n", setting.name);
    }
    let mark = if is_set(setting) { "" } else { "-- " };
    let (name, value) = (setting.name, setting.value.as_deref().unwrap_or_default());
    format!("{mark}ALTER SYSTEM SET {name} = '{value}';\n")
}
