//! A server's state as a page for a browser, a telephone's included: no script, nothing fetched, anew every ten seconds.
//!
//! Invariants: every text that is not of this file is escaped, and cannot turn the direction of what stands around it; statements,
//! roles and addresses of clients are shown to who looks from this machine only.

use std::fmt::Write as _;
use std::time::Duration;

use super::view::{Directory, View};
use crate::activity::{Activity, SessionState};
use crate::metrics::StatementEnd;

pub(crate) const CONTENT_TYPE: &str = "text/html; charset=utf-8";

/// Databases of a directory that are named; what there is of others is said.
const MOST_DATABASES: usize = 50;

const HEAD: &str = "<!doctype html>
<html lang=en>
<head>
<meta charset=utf-8>
<meta name=viewport content='width=device-width, initial-scale=1'>
<meta http-equiv=refresh content=10>
<title>Pagemill</title>
<style>
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --bad: #c62828 }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80 } }
body { font: 1rem/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem }
h1 { font-size: 1.3rem; margin: 0 } h1 small { font-weight: normal; opacity: .7 }
h2 { font-size: 1.05rem; margin: 1.6rem 0 .5rem }
p { margin: .3rem 0 } .none { opacity: .7 }
.bad { color: var(--bad); font-weight: 600 }
.facts { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1rem 0 0; padding: 0 }
.facts div { background: var(--soft); border-radius: .5rem; padding: .5rem .8rem; flex: 1 1 6.2rem }
dt { font-size: .8rem; opacity: .75 } dd { font-size: 1.15rem; margin: 0; font-variant-numeric: tabular-nums }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .7rem .35rem 0; text-align: left; vertical-align: top }
th { font-size: .8rem; font-weight: normal; opacity: .75; white-space: nowrap }
td { font-variant-numeric: tabular-nums }
code { font: .85rem/1.4 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate }
td code { display: inline-block; max-height: 12rem; overflow: auto }
bdi { overflow-wrap: break-word }
@media (max-width: 44rem) {
  tr.head { display: none }
  tr { display: block; border-bottom: 1px solid var(--line); padding: .4rem 0 }
  td { display: grid; grid-template-columns: 6.5rem 1fr; border: 0; padding: .1rem 0 }
  td::before { content: attr(data-of); font-size: .8rem; opacity: .75; line-height: 1.8 }
  td div { min-width: 0 }
}
</style>
</head>
<body>
";

/// The page.
pub(crate) fn page(view: &View, is_local: bool) -> String {
    let mut out = String::from(HEAD);
    let version = env!("CARGO_PKG_VERSION");
    let up = age(view.now.saturating_sub(view.started));
    let _ = writeln!(out, "<h1>Pagemill <small>{version}, up for {up}</small></h1>");
    facts(&mut out, view);
    running(&mut out, view, is_local);
    directories(&mut out, view, is_local);
    sessions(&mut out, view, is_local);
    errors(&mut out, view);
    out.push_str("<p class=none><a href=/metrics>Metrics</a></p>\n</body>\n</html>\n");
    out
}

fn facts(out: &mut String, view: &View) {
    let metrics = &view.metrics;
    let active = active(view).count();
    let sessions = view.sessions.len();
    let damage = metrics.damage.get();
    let facts = [
        ("Sessions", format!("{sessions} of {}", view.most_sessions), false),
        ("Running", active.to_string(), false),
        ("Statements", grouped(metrics.statements.get()), false),
        ("Failed", grouped(metrics.ended(StatementEnd::Failed)), false),
        ("Rows", grouped(metrics.rows.get()), false),
        ("Sent", bytes(metrics.sent_bytes.get()), false),
        ("Damage", grouped(damage), damage > 0),
    ];
    out.push_str("<dl class=facts>");
    for (name, value, is_bad) in facts {
        let class = if is_bad { " class=bad" } else { "" };
        let _ = write!(out, "<div><dt>{name}</dt><dd{class}>{value}</dd></div>");
    }
    out.push_str("</dl>\n");
}

fn active(view: &View) -> impl Iterator<Item = &(i32, Activity)> {
    view.sessions.iter().filter(|(_, session)| session.state == SessionState::Active)
}

/// A table with these headings, which a narrow screen has beside each cell; or a line that says that there is nothing for it.
fn table(out: &mut String, headings: &[&str], rows: &[Vec<String>]) {
    if rows.is_empty() {
        out.push_str("<p class=none>None.</p>\n");
        return;
    }
    let names: String = headings.iter().map(|heading| format!("<th>{heading}</th>")).collect();
    let _ = writeln!(out, "<table><tr class=head>{names}</tr>");
    for row in rows {
        out.push_str("<tr>");
        for (heading, cell) in headings.iter().zip(row) {
            let _ = write!(out, "<td data-of='{heading}'><div>{cell}</div></td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}

fn running(out: &mut String, view: &View, is_local: bool) {
    out.push_str("<h2>Running statements</h2>\n");
    let mut running: Vec<_> = active(view).collect();
    running.sort_by_key(|(_, session)| std::cmp::Reverse(session.age()));
    let row = |(number, session): &&(i32, Activity)| {
        let owner = &session.owner;
        let statement = format!("<code>{}</code>", escaped(&session.text));
        let all = [age(session.age()), number.to_string(), text(&owner.database)];
        let own = [text(&owner.user), statement];
        all.into_iter().chain(own.into_iter().filter(|_| is_local)).collect()
    };
    let rows: Vec<Vec<String>> = running.iter().map(row).collect();
    let headings = ["For", "Session", "Database", "Role", "Statement"];
    table(out, &headings[..if is_local { 5 } else { 3 }], &rows);
}

fn directories(out: &mut String, view: &View, is_local: bool) {
    out.push_str("<h2>Data directories</h2>\n");
    let opened = age(view.now.saturating_sub(view.opened));
    let _ = write!(out, "<p>Opened {opened} ago, at ");
    out.push_str(if view.reloads.done > 0 { "a signal." } else { "the start." });
    if let Some((moment, why)) = &view.reloads.last_failure {
        let ago = age(view.now.saturating_sub(*moment));
        let _ = write!(out, " <span class=bad>Not opened anew {ago} ago");
        match is_local {
            true => _ = write!(out, ": {}</span>", text(why)),
            false => out.push_str(".</span>"),
        }
    }
    out.push_str("</p>\n");
    let row = |directory: &Directory| {
        let state = match &directory.change {
            None => "as it was opened".to_owned(),
            Some(change) => format!("<span class=bad>changed: {}</span>", text(change)),
        };
        let path = format!("<br><code>{}</code>", escaped(&directory.path));
        let path = if is_local { path } else { String::new() };
        vec![
            format!("{}{path}", text(&directory.name)),
            directory.major.to_string(),
            state,
            databases(&directory.databases),
            bytes(directory.reads.bytes_read),
            share(directory.buffers),
        ]
    };
    let rows: Vec<Vec<String>> = view.directories.iter().map(row).collect();
    table(out, &["Name", "PostgreSQL", "State", "Databases", "Read", "Buffer hits"], &rows);
}

fn databases(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(MOST_DATABASES).map(|name| text(name)).collect();
    let others = names.len().saturating_sub(MOST_DATABASES);
    let others = if others > 0 { format!(" and {others} others") } else { String::new() };
    format!("{}{others}", shown.join(", "))
}

fn sessions(out: &mut String, view: &View, is_local: bool) {
    out.push_str("<h2>Sessions</h2>\n");
    if !is_local {
        let in_state = |state: SessionState| {
            let count = view.sessions.iter().filter(|(_, session)| session.state == state).count();
            (count > 0).then(|| format!("{count} {}", state.name()))
        };
        let states: Vec<String> = SessionState::ALL.into_iter().filter_map(in_state).collect();
        let states = if states.is_empty() { "None".to_owned() } else { states.join(", ") };
        let _ = writeln!(out, "<p>{states}. Who they are is shown to this machine only.</p>");
        return;
    }
    let row = |(number, session): &(i32, Activity)| {
        let owner = &session.owner;
        let place = owner.address.map_or_else(|| "socket".to_owned(), |place| place.to_string());
        let state = format!("{} for {}", session.state.name(), age(session.age()));
        vec![number.to_string(), text(&owner.database), text(&owner.user), place, state]
    };
    let rows: Vec<Vec<String>> = view.sessions.iter().map(row).collect();
    table(out, &["Session", "Database", "Role", "From", "State"], &rows);
}

fn errors(out: &mut String, view: &View) {
    out.push_str("<h2>Errors</h2>\n");
    let errors = view.metrics.errors();
    let row = |(class, count): (&&str, &u64)| vec![text(class), grouped(*count)];
    let rows: Vec<Vec<String>> = errors.iter().map(row).collect();
    table(out, &["SQLSTATE class", "Told to clients"], &rows);
}

/// A text of others.
fn text(text: &str) -> String {
    format!("<bdi>{}</bdi>", escaped(text))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

/// A text that stays on its line.
fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// A duration as people say it, by its two largest units.
fn age(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let said = match (days, hours, minutes) {
        (0, 0, 0) if seconds < 10 => format!("{:.1} s", duration.as_secs_f64()),
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    };
    unbroken(&said)
}

/// A number with blanks between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let blank = |at: usize| at > 0 && (digits.len() - at).is_multiple_of(3);
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if blank(at) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

fn bytes(number: u64) -> String {
    let units = ["kB", "MB", "GB", "TB", "PB"];
    if number < 1000 {
        return unbroken(&format!("{number} B"));
    }
    let mut size = number as f64 / 1000.0;
    let mut unit = units[0];
    for larger in &units[1..] {
        if size < 999.5 {
            break;
        }
        (size, unit) = (size / 1000.0, larger);
    }
    unbroken(&format!("{size:.1} {unit}"))
}

/// How much of all was hits.
fn share((hits, misses): (u64, u64)) -> String {
    match hits + misses {
        0 => "none".to_owned(),
        all => format!("{:.1}\u{a0}%", hits as f64 * 100.0 / all as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_cannot_be_markup() {
        let hostile = "</code><script>alert(1)</script> & \"x\" 'y' \u{1b}[31m\0";
        let found = escaped(hostile);
        assert!(!found.contains(['<', '>', '"', '\'', '\u{1b}', '\0']), "{found}");
        assert!(
            found.starts_with("&lt;/code&gt;&lt;script&gt;alert(1)") && found.contains(" &amp; ")
        );
    }

    #[test]
    fn numbers_are_said_as_people_say_them() {
        let of = |seconds| age(Duration::from_secs(seconds)).replace('\u{a0}', " ");
        assert_eq!(
            [of(3), of(59), of(61), of(7260), of(90_000)],
            ["3.0 s", "59 s", "1 min 1 s", "2 h 1 min", "1 d 1 h"]
        );
        assert_eq!(
            [grouped(7), grouped(1234), grouped(1_000_000)],
            ["7", "1\u{202f}234", "1\u{202f}000\u{202f}000"]
        );
        assert_eq!(
            [999, 1500, 999_999, 12_345_678].map(|n| bytes(n).replace('\u{a0}', " ")),
            ["999 B", "1.5 kB", "1.0 MB", "12.3 MB"]
        );
        assert_eq!([share((0, 0)), share((3, 1))], ["none", "75.0\u{a0}%"]);
    }
}
