//! What a terminal shows of a run of the lab: what it takes, which turn it is, and with `--details` each group when it is
//! done.
//!
//! Invariant: nothing is drawn while a turn is measured: the bar moves between turns, and has no thread of its own.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pagemill_lab::results::{Experiment, Group};
use pagemill_lab::{Announcement, Cancel, Watch, report};

use crate::failure::say;
use crate::lab::print;
use crate::lab_arguments::LabArguments;
use crate::progress::is_wanted;
use crate::text_table::pretty_size;

const TEMPLATE: &str = "{bar:20} {elapsed} of about {msg}";

/// The display of one run.
pub(crate) struct LabDisplay {
    bar: ProgressBar,
    begin: Instant,
    verbose: bool,
    /// Tables are wanted as they come.
    details: bool,
    expected: Cell<Duration>,
    /// Experiment and group.
    place: RefCell<(String, String)>,
    rounds: Cell<u32>,
    pass: Cell<u32>,
    /// The run ends when nobody reads what it tells.
    cancel: Cancel,
    /// The first failure to write.
    pub(crate) failure: RefCell<Option<anyhow::Error>>,
}

impl LabDisplay {
    pub(crate) fn new(arguments: &LabArguments, cancel: Cancel) -> Self {
        let target = match is_wanted(arguments.progress) {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        Self {
            bar,
            begin: Instant::now(),
            verbose: arguments.verbose,
            details: arguments.details,
            expected: Cell::default(),
            place: RefCell::default(),
            rounds: Cell::default(),
            pass: Cell::default(),
            cancel,
            failure: RefCell::default(),
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn tell(&self, text: &str) {
        if !self.details {
            return;
        }
        if let Err(error) = self.bar.suspend(|| print(text)) {
            self.failure.borrow_mut().get_or_insert(error);
            self.cancel.cancel();
        }
    }

    fn show(&self, what: &str) {
        self.bar.set_position(self.begin.elapsed().as_secs());
        self.bar.set_message(format!("{}: {what}", minutes(self.expected.get())));
        self.bar.tick();
        if self.verbose {
            self.bar.suspend(|| say(what));
        }
    }
}

/// A time as people say it.
fn minutes(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

impl Watch for LabDisplay {
    fn announced(&self, announcement: &Announcement) {
        self.expected.set(announcement.time);
        self.bar.set_length(announcement.time.as_secs());
        self.bar.suspend(|| {
            say(format!(
                "{}: about {}, up to {} of disk space ({} are free)",
                announcement.experiments.join(", "),
                minutes(announcement.time),
                pretty_size(announcement.bytes_needed),
                pretty_size(announcement.bytes_free),
            ));
        });
    }

    fn pass_begins(&self, experiment: &str, pass: u32, passes: u32) {
        experiment.clone_into(&mut self.place.borrow_mut().0);
        // The first pass knows best how long the others take.
        if pass > self.pass.replace(pass) && pass > 1 {
            let expected = self.begin.elapsed() / (pass - 1) * passes;
            self.expected.set(expected);
            self.bar.set_length(expected.as_secs());
        }
    }

    fn experiment_begins(&self, name: &str, title: &str, _time: Duration) {
        name.clone_into(&mut self.place.borrow_mut().0);
        self.tell(&format!("\n{name}: {title}\n"));
    }

    fn preparing(&self, what: &str) {
        self.show(&format!("{}: {what}", self.place.borrow().0));
    }

    fn group_begins(&self, group: &Group, rounds: u32) {
        self.place.borrow_mut().1.clone_from(&group.name);
        self.rounds.set(rounds);
    }

    fn turn_begins(&self, cell: &str, round: u32) {
        let (experiment, group) = &*self.place.borrow();
        let rounds = self.rounds.get();
        let turn = match round {
            0 => "warm-up".to_owned(),
            round => format!("round {round} of {rounds} at most"),
        };
        self.show(&format!("{experiment}/{group}: {cell}, {turn}"));
    }

    fn group_done(&self, experiment: &str, group: &Group) {
        // The title of a table needs no more of it than its name.
        let experiment = Experiment { name: experiment.into(), ..Experiment::default() };
        let mut text = Vec::new();
        // Memory takes all that is written to it.
        let _ = report::text_group(&experiment, group, &mut text);
        self.tell(&String::from_utf8_lossy(&text));
    }

    fn experiment_done(&self, experiment: &Experiment) {
        for part in &experiment.skipped {
            self.tell(&format!("\n  not run: {}: {}\n", part.what, part.why));
        }
    }
}
