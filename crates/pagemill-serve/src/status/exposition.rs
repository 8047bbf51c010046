//! What was counted, in Prometheus' text format.
//!
//! Invariant: a name has its kind and its help once, and all its values behind them.
//!
//! Source: Prometheus' documentation, "Exposition formats", version 0.0.4.

use std::fmt::{Display, Write as _};

use super::view::{Directory, View};
use crate::activity::SessionState;
use crate::metrics::StatementEnd;

/// The type of the text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A number of a directory.
type CountOf = fn(&Directory) -> u64;

/// A text that grows.
struct Exposition(String);

impl Exposition {
    /// A name with all its values, each by its labels.
    fn family<V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        values: impl IntoIterator<Item = (Vec<(&'static str, String)>, V)>,
    ) {
        let _ = writeln!(self.0, "# HELP pagemill_{name} {help}\n# TYPE pagemill_{name} {kind}");
        for (labels, value) in values {
            let labels =
                labels.iter().map(|(label, text)| format!("{label}=\"{}\"", escaped(text)));
            let labels = labels.collect::<Vec<_>>().join(",");
            let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
            let _ = writeln!(self.0, "pagemill_{name}{labels} {value}");
        }
    }

    fn total(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help, [(Vec::new(), value)]);
    }

    fn gauge<V: Display>(&mut self, name: &str, help: &str, value: V) {
        self.family(name, "gauge", help, [(Vec::new(), value)]);
    }
}

/// A label's value as it stands between quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// All of it.
pub(crate) fn metrics(view: &View) -> String {
    let mut out = Exposition(String::new());
    let version = ("version", env!("CARGO_PKG_VERSION").to_owned());
    out.family("build_info", "gauge", "The program.", [(vec![version], 1)]);
    out.gauge(
        "start_time_seconds",
        "When the server started, since 1970.",
        view.started.as_secs_f64(),
    );
    sessions(&mut out, view);
    statements(&mut out, view);
    directories(&mut out, view);
    out.0
}

fn sessions(out: &mut Exposition, view: &View) {
    let in_state = |state: SessionState| {
        let count = view.sessions.iter().filter(|(_, session)| session.state == state).count();
        (vec![("state", state.name().to_owned())], count)
    };
    let help = "Sessions, by where they stand.";
    out.family("sessions", "gauge", help, SessionState::ALL.map(in_state));
    out.gauge("sessions_limit", "Sessions that there may be at a time.", view.most_sessions);
    let metrics = &view.metrics;
    out.total("connections_total", "Clients that were let in.", metrics.connections.get());
    let help = "Clients that were told why they are not let in.";
    out.total("connections_refused_total", help, metrics.refusals.get());
}

fn statements(out: &mut Exposition, view: &View) {
    let metrics = &view.metrics;
    out.total("statements_started_total", "Statements that began.", metrics.statements.get());
    let ended = |outcome: StatementEnd| {
        (vec![("outcome", outcome.name().to_owned())], metrics.ended(outcome))
    };
    let help = "Statements that ended; left are those whose other rows nobody asked for.";
    out.family("statements_ended_total", "counter", help, StatementEnd::ALL.map(ended));
    let errors = metrics.errors().into_iter();
    let errors = errors.map(|(class, count)| (vec![("class", class.to_owned())], count));
    let help = "Errors that clients were told, by the class of their SQLSTATE.";
    out.family("errors_total", "counter", help, errors);
    out.total("rows_total", "Rows that statements gave.", metrics.rows.get());
    out.total("sent_bytes_total", "Bytes that were sent to clients.", metrics.sent_bytes.get());
    out.total(
        "pages_scanned_total",
        "Pages of tables that statements scanned.",
        metrics.pages.get(),
    );
    let help = "Damage that was met: left out of an answer, or the end of a statement.";
    out.total("damage_total", help, metrics.damage.get());
}

fn directories(out: &mut Exposition, view: &View) {
    let reloads = [("done", view.reloads.done), ("failed", view.reloads.failed)];
    let reloads = reloads.map(|(outcome, count)| (vec![("outcome", outcome.to_owned())], count));
    let help = "How often the directories were to be opened anew.";
    out.family("reloads_total", "counter", help, reloads);
    let opened = view.opened.as_secs_f64();
    out.gauge("opened_time_seconds", "When the directories were opened, since 1970.", opened);
    let named = |name: &str| vec![("directory", name.to_owned())];
    let info = view.directories.iter().map(|directory| {
        let version = ("version", directory.major.to_string());
        ([named(&directory.name), vec![version]].concat(), 1)
    });
    out.family("directory_info", "gauge", "The data directories.", info);
    let unchanged = view.directories.iter();
    let unchanged = unchanged.map(|of| (named(&of.name), u8::from(of.change.is_none())));
    let help = "1 where the files are those that were opened.";
    out.family("directory_unchanged", "gauge", help, unchanged);
    let counters: [(&str, &str, CountOf); 4] = [
        ("read_calls_total", "Calls that read files, since they were opened.", |of| {
            of.reads.read_calls
        }),
        ("read_bytes_total", "Bytes that those calls gave.", |of| of.reads.bytes_read),
        ("buffer_hits_total", "Pages that were found in the shared buffers.", |of| of.buffers.0),
        ("buffer_misses_total", "Pages that were read into the shared buffers.", |of| of.buffers.1),
    ];
    for (name, help, count) in counters {
        let values = view.directories.iter().map(|of| (named(&of.name), count(of)));
        out.family(name, "counter", help, values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut out = Exposition(String::new());
        let labels = vec![("directory", "a\"b\\c\nd".to_owned())];
        out.family("x", "gauge", "An x.", [(labels, 1)]);
        let wanted = "# HELP pagemill_x An x.\n# TYPE pagemill_x gauge\npagemill_x{directory=\"a\\\"b\\\\c\\nd\"} 1\n";
        assert_eq!(out.0, wanted);
    }
}
