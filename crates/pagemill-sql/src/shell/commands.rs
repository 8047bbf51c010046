//! Backslash commands. What is not there says so by its name.
//!
//! Source: `src/bin/psql/command.c`, PostgreSQL 15, for what a command is called and what it says.

use std::io::Write as _;

use super::cut::arguments;
use super::describe::{self, Asking};
use super::running::interruptible;
use super::target::Target;
use super::{Shell, print};
use crate::error::Result;
use crate::output::{Expanded, OutputFormat};
use crate::session::Session;

/// The commands, each with what it does.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    ("?", "this list"),
    ("a", "unaligned output, or aligned again"),
    ("c", "DATABASE: read another database of the cluster"),
    (
        "d",
        "[PATTERN]: relations; those of the pattern described, with \\d+ in full. Of this and the other lists + shows more columns, and S what is the system's",
    ),
    ("dt", "[PATTERN]: tables; \\dE foreign ones"),
    ("di", "[PATTERN]: indexes"),
    ("dv", "[PATTERN]: views"),
    ("dm", "[PATTERN]: materialized views"),
    ("ds", "[PATTERN]: sequences"),
    (
        "df",
        "[PATTERN]: functions; \\dfn, \\dfa, \\dfp, \\dft, \\dfw of one kind; \\da aggregates, \\do operators",
    ),
    ("dn", "[PATTERN]: schemas"),
    ("dT", "[PATTERN]: types; \\dD domains, \\dC casts, \\dO collations"),
    ("dp", "[PATTERN]: who may do what with relations; \\ddp what is granted on those to come"),
    ("du", "[PATTERN]: roles; \\drds what is set for them"),
    ("dx", "[PATTERN]: extensions; \\dL languages, \\dy event triggers, \\dA access methods"),
    ("des", "[PATTERN]: foreign servers; \\det tables, \\deu mappings of users, \\dew wrappers"),
    (
        "dF",
        "[PATTERN]: configurations of text search; \\dFd dictionaries, \\dFp parsers, \\dFt templates",
    ),
    ("dRp", "[PATTERN]: publications; \\dRs subscriptions"),
    ("db", "[PATTERN]: tablespaces"),
    ("l", "[PATTERN]: databases"),
    ("sf", "FUNCTION: the statement that makes it; \\sf+ with numbers of lines"),
    ("sv", "VIEW: the statement that makes it"),
    ("lo_list", "large objects"),
    ("lo_export", "NUMBER FILE: a large object as a file"),
    ("conninfo", "what is read, and the moment that it is read at"),
    ("echo", "TEXT: write it; \\qecho writes it where answers go"),
    ("g", "[FILE]: run the statement, or the one before again; its answer goes to FILE"),
    ("gx", "[FILE]: the same, with columns below each other"),
    ("gset", "[PREFIX]: run the statement; the columns of its row become variables"),
    ("if", "CONDITION: what follows is done if it is true, up to \\elif, \\else or \\endif"),
    ("h", "what statements there are"),
    ("i", "FILE: statements of a file"),
    ("o", "[FILE]: answers go to FILE, or here again"),
    ("p", "show the statement so far; \\r forgets it"),
    ("pset", "[NAME [VALUE]]: border, expanded, fieldsep, format, null, tuples_only"),
    ("q", "quit"),
    (
        "set",
        "[NAME [VALUE]]: a variable, which :NAME, :'NAME' and :\"NAME\" stand for; ON_ERROR_STOP ends a file at an error",
    ),
    ("unset", "NAME: forget a variable"),
    ("t", "rows only, or names and counts again"),
    ("timing", "[on|off]: how long statements take"),
    ("x", "[on|off|auto]: columns below each other"),
];

/// The moment behind milliseconds in a form for long times.
///
/// Source: `PrintTiming` in `src/bin/psql/common.c`, PostgreSQL 15.
pub(super) fn long_time(milliseconds: f64) -> String {
    if milliseconds < 1000.0 {
        return String::new();
    }
    let seconds = milliseconds / 1000.0;
    let minutes = (seconds / 60.0).floor();
    let rest = seconds - minutes * 60.0;
    if minutes < 60.0 {
        return format!(" ({minutes:02.0}:{rest:06.3})");
    }
    let hours = (minutes / 60.0).floor();
    let minutes = minutes - hours * 60.0;
    if hours < 24.0 {
        return format!(" ({hours:02.0}:{minutes:02.0}:{rest:06.3})");
    }
    let days = (hours / 24.0).floor();
    format!(" ({days:.0} d {:02.0}:{minutes:02.0}:{rest:06.3})", hours - days * 24.0)
}

/// `on`, `off`, and what else stands for them.
///
/// Source: `ParseVariableBool` in `src/bin/psql/variables.c`, PostgreSQL 15.
pub(super) fn boolean(text: &str) -> Option<bool> {
    let lower = text.to_lowercase();
    let begins = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
    match () {
        () if begins("true", 1) || begins("yes", 1) || begins("on", 2) || lower == "1" => {
            Some(true)
        }
        () if begins("false", 1) || begins("no", 1) || begins("off", 2) || lower == "0" => {
            Some(false)
        }
        () => None,
    }
}

fn on_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

impl Shell {
    /// Does a backslash command.
    ///
    /// # Errors
    /// Where the shell cannot go on: nobody reads answers any more.
    pub(super) fn command(&mut self, name: &str, rest: &str) -> Result<()> {
        if name == "copy" {
            return self.copy(rest, self.target.clone());
        }
        let words = match arguments(rest, &self.variables) {
            Ok(words) => words,
            Err(message) => {
                self.complain(format!("\\{name}: {message}"));
                return Ok(());
            }
        };
        let first = words.first().map(String::as_str);
        match name {
            "q" | "quit" => self.ends = true,
            "?" => self.list_commands(),
            "h" | "help" => self.list_statements(),
            "g" | "gx" => self.go(name == "gx", first)?,
            "p" | "print" => self.print_statement(),
            "r" | "reset" => {
                self.cutter.reset();
                self.say("Query buffer reset (cleared).");
            }
            "i" | "include" => match first {
                Some(path) => self.include(path)?,
                None => self.complain(format!("\\{name}: missing required argument")),
            },
            "o" | "out" => self.redirect(first),
            "c" | "connect" => self.connect(first)?,
            "conninfo" => self.tell_place(),
            "echo" if first == Some("-n") => {
                let mut out = std::io::stdout();
                write!(out, "{}", words[1..].join(" "))?;
                out.flush()?;
            }
            "echo" => print(words.join(" ")),
            "set" => self.set_variable(&words),
            "unset" => self.unset_variable(&words),
            "gset" => self.answer_to_variables(first.unwrap_or_default())?,
            "lo_export" => self.export_object(&words)?,
            "sf" | "sf+" | "sv" | "sv+" => self.show_source(name, rest.trim())?,
            "qecho" => writeln!(self.target, "{}", words.join(" "))?,
            _ if describe::is_known(name) => self.describe(name, &words)?,
            "warn" => eprintln!("{}", words.join(" ")),
            _ => self.setting(name, &words),
        }
        Ok(())
    }

    /// `\d` and its kin, once for each pattern, but where further ones say more of the first.
    fn describe(&mut self, name: &str, words: &[String]) -> Result<()> {
        let patterns: Vec<Vec<String>> = match words {
            words if words.is_empty() || describe::takes_several(name) => vec![words.to_vec()],
            words => words.iter().map(|word| vec![word.clone()]).collect(),
        };
        for patterns in patterns {
            let mut style = self.style.clone();
            if name.trim_end_matches(['+', 'S']) == "d" && !patterns.is_empty() {
                // The columns of a relation stay side by side, as what follows them would be read as a part of the last.
                style.expanded = Expanded::Off;
            }
            // As psql: NULL is nothing in its lists.
            style.null = String::new();
            let (session, runtime) = (self.session.clone(), self.runtime.clone());
            let name = name.to_owned();
            let found = interruptible(move |cancel| {
                let asking = Asking { session: &session, runtime: &runtime, cancel };
                describe::describe(&asking, &name, &patterns)
            });
            match found {
                Ok(found) => {
                    for table in &found.tables {
                        let mut out = Vec::new();
                        table.write(&style, &mut out)?;
                        self.target.write_all(&out)?;
                    }
                    if let Some(message) = found.message {
                        self.complain(message);
                    }
                }
                Err(error) => return self.tell(error),
            }
        }
        Ok(())
    }

    /// `\sf` and `\sv`.
    fn show_source(&mut self, name: &str, object: &str) -> Result<()> {
        if object.is_empty() {
            self.complain(format!("\\{name}: missing required argument"));
            return Ok(());
        }
        let (session, runtime) = (self.session.clone(), self.runtime.clone());
        let (name, object) = (name.to_owned(), object.to_owned());
        let found = interruptible(move |cancel| {
            let asking = Asking { session: &session, runtime: &runtime, cancel };
            describe::source(&asking, &name, &object)
        });
        match found {
            Ok(text) => Ok(self.target.write_all(text.as_bytes())?),
            Err(error) => self.tell(error),
        }
    }

    fn setting(&mut self, name: &str, words: &[String]) {
        let first = words.first().map(String::as_str);
        match name {
            "x" => self.pset("expanded", first),
            "a" => {
                let is_aligned = self.style.format == OutputFormat::Aligned;
                self.pset("format", Some(if is_aligned { "unaligned" } else { "aligned" }));
            }
            "t" => self.pset("tuples_only", first),
            "f" => self.pset("fieldsep", first),
            "timing" => match first.map_or(Some(!self.times), boolean) {
                Some(times) => {
                    self.times = times;
                    self.say(format!("Timing is {}.", on_off(times)));
                }
                None => self.complain("\\timing: on or off is expected"),
            },
            "pset" => match first {
                Some(what) => self.pset(what, words.get(1).map(String::as_str)),
                None => self.list_settings(),
            },
            _ => self.complain(format!("\\{name} is not supported here; \\? lists what is")),
        }
    }

    fn list_commands(&self) {
        let width = COMMANDS.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, what) in COMMANDS {
            print(format!("  \\{name:width$}  {what}"));
        }
    }

    fn list_statements(&self) {
        print(
            "SELECT, VALUES, TABLE, WITH … SELECT, EXPLAIN [ANALYZE] of them: all of them read, and nothing is changed.\n\
             What is not known to give the server's answer is refused by name.",
        );
    }

    fn print_statement(&self) {
        match self.cutter.statement().trim_end() {
            "" => print(self.last.as_deref().unwrap_or("Query buffer is empty.")),
            text => print(text),
        }
    }

    /// `\g`: the statement so far ends here; with none, the last one runs again.
    fn go(&mut self, is_expanded: bool, file: Option<&str>) -> Result<()> {
        let typed = self.cutter.take();
        let text = if typed.is_empty() { self.last.clone() } else { Some(typed) };
        let Some(text) = text else { return Ok(()) };
        let style = if is_expanded { self.expanded_style() } else { self.style.clone() };
        let target = match file {
            None => self.target.clone(),
            Some(path) => match self.opened(path) {
                Some(target) => target,
                None => return Ok(()),
            },
        };
        self.statement(&text, &style, target)
    }

    fn opened(&mut self, path: &str) -> Option<Target> {
        if path.starts_with(['|', '(']) {
            self.complain(format!("{path}: neither pipes nor options are supported here"));
            return None;
        }
        match Target::create(path) {
            Ok(target) => Some(target),
            Err(error) => {
                self.complain(format!("{path}: {error}"));
                None
            }
        }
    }

    fn redirect(&mut self, file: Option<&str>) {
        match file {
            None => self.target = self.options.out.clone().unwrap_or(Target::Standard),
            Some(path) => {
                if let Some(target) = self.opened(path) {
                    self.target = target;
                }
            }
        }
    }

    fn connect(&mut self, name: Option<&str>) -> Result<()> {
        let own =
            || String::from_utf8_lossy(&self.session.catalog().database().row().name).into_owned();
        let name = name.filter(|name| *name != "-").map_or_else(own, unquoted);
        let (cluster, wanted) = (self.cluster.clone(), name.clone());
        let options = self.options.session.clone();
        let (clusters, files) = (self.session.clusters().clone(), self.session.files().clone());
        let workers = self.session.workers().clone();
        let opened = interruptible(move |_| {
            let session = Session::open(&cluster.database(&wanted)?, options)?;
            Ok(session.beside(clusters).with_files(files).with_workers(workers))
        });
        match opened {
            Ok(session) => {
                self.session = std::sync::Arc::new(session);
                self.names_are_others();
                self.name_database();
                self.say(format!("You are now reading database \"{name}\"."));
                Ok(())
            }
            Err(error) => self.tell(error),
        }
    }

    fn tell_place(&self) {
        let name = self.session.catalog().database().row().name.clone();
        let (name, directory) = (String::from_utf8_lossy(&name), self.cluster.path().display());
        print(format!(
            "You are reading database \"{name}\" in the directory \"{directory}\" of PostgreSQL {}, as it was at {}.",
            self.cluster.version(),
            self.options.moment
        ));
    }

    fn list_settings(&self) {
        let style = &self.style;
        let expanded = match style.expanded {
            Expanded::Auto => "auto",
            other => on_off(other == Expanded::On),
        };
        for (name, value) in [
            ("border", style.border.to_string()),
            ("expanded", expanded.to_owned()),
            ("fieldsep", format!("'{}'", style.field_separator)),
            ("format", format_name(style.format).to_owned()),
            ("null", format!("'{}'", style.null)),
            ("tuples_only", on_off(style.tuples_only).to_owned()),
        ] {
            print(format!("{name:24} {value}"));
        }
    }

    /// Sets a detail of the output, and says what it is now.
    fn pset(&mut self, what: &str, value: Option<&str>) {
        match self.set_style(what, value) {
            // So psql does it, too.
            Ok(_) if what.starts_with('t') && value.is_some() => {}
            Ok(now) => self.say(now),
            Err(message) => self.complain(format!("\\pset: {message}")),
        }
    }

    fn set_style(&mut self, what: &str, value: Option<&str>) -> Result<String, String> {
        let style = &mut self.style;
        Ok(match what {
            "null" => {
                style.null = value.unwrap_or(&style.null).to_owned();
                format!("Null display is \"{}\".", style.null)
            }
            "fieldsep" => {
                style.field_separator = value.unwrap_or(&style.field_separator).to_owned();
                format!("Field separator is \"{}\".", style.field_separator)
            }
            "border" => {
                let wanted = value.map_or(Ok(style.border), str::parse);
                style.border = wanted
                    .ok()
                    .filter(|border| *border <= 2)
                    .ok_or_else(|| "allowed borders are 0, 1 and 2".to_owned())?;
                format!("Border style is {}.", style.border)
            }
            "format" => {
                style.format = value.map_or(Some(style.format), format_named).ok_or_else(|| {
                    "allowed formats are aligned, csv, json, markdown, unaligned".to_owned()
                })?;
                format!("Output format is {}.", format_name(style.format))
            }
            "t" | "tuples_only" => {
                let wanted = value.map_or(Some(!style.tuples_only), boolean);
                style.tuples_only = wanted.ok_or("tuples_only is on or off")?;
                format!("Tuples only is {}.", on_off(style.tuples_only))
            }
            "x" | "expanded" | "vertical" => {
                style.expanded = match value {
                    None if style.expanded == Expanded::Off => Expanded::On,
                    None => Expanded::Off,
                    Some(word) if word.eq_ignore_ascii_case("auto") => Expanded::Auto,
                    Some(word) => match boolean(word).ok_or("expanded is on, off or auto")? {
                        true => Expanded::On,
                        false => Expanded::Off,
                    },
                };
                match style.expanded {
                    Expanded::Auto => "Expanded display is used automatically.".to_owned(),
                    other => format!("Expanded display is {}.", on_off(other == Expanded::On)),
                }
            }
            other => return Err(format!("{other} is not supported here")),
        })
    }
}

fn format_name(format: OutputFormat) -> &'static str {
    match format {
        OutputFormat::Aligned | OutputFormat::Expanded => "aligned",
        OutputFormat::Unaligned => "unaligned",
        OutputFormat::Csv => "csv",
        OutputFormat::Json => "json",
        OutputFormat::Markdown => "markdown",
    }
}

fn format_named(name: &str) -> Option<OutputFormat> {
    [
        OutputFormat::Aligned,
        OutputFormat::Unaligned,
        OutputFormat::Csv,
        OutputFormat::Json,
        OutputFormat::Markdown,
    ]
    .into_iter()
    .find(|format| format_name(*format) == name.to_lowercase())
}

/// A name of a database, whose quotes are none of it.
fn unquoted(name: &str) -> String {
    match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(name) => name.replace("\"\"", "\""),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{boolean, long_time};

    /// As psql prints them.
    #[test]
    fn long_times_are_told_in_minutes_and_hours() {
        assert_eq!(long_time(999.9), "");
        assert_eq!(long_time(1234.567), " (00:01.235)");
        assert_eq!(long_time(61_000.0), " (01:01.000)");
        assert_eq!(long_time(3_661_500.0), " (01:01:01.500)");
        assert_eq!(long_time(90_061_000.0), " (1 d 01:01:01.000)");
    }

    #[test]
    fn words_stand_for_on_and_off() {
        for (word, value) in [
            ("on", Some(true)),
            ("of", Some(false)),
            ("T", Some(true)),
            ("o", None),
            ("0", Some(false)),
            ("x", None),
        ] {
            assert_eq!(boolean(word), value, "{word}");
        }
    }
}
